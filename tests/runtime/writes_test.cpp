// Functions that write their inputs, beyond the rows of the table of behaviours.
#include "runtime/compare.h"

namespace tandem {
namespace {

using test::compare_both;
using test::non_leaves;

TEST(Writes, AWriteGivesTheOldContentsNoGradientOfItsOwn) {
  Callable zeros = [](const Tensors& in) {
    in[0].mul_(at::zeros({2}));
    return Tensors{in[0]};
  };
  auto gradient = [](const Callable& f) {
    at::Tensor x = at::ones({2}).requires_grad_();
    at::Tensor y = f({x.clone()})[0];
    return torch::autograd::grad({y}, {x}, {at::full({2}, -1.0)})[0].signbit();
  };
  EXPECT_TRUE(at::equal(gradient(Compiled(zeros, {})), gradient(zeros)));
}

TEST(Writes, StatisticsAreWrittenWithoutAVersion) {
  Callable fn = [](const Tensors& in) {
    at::Tensor mean = in[1], variance = in[2];
    return Tensors{std::get<0>(at::_native_batch_norm_legit(in[0], {}, {}, mean, variance, true, 0.1, 1e-5))};
  };
  auto versions = [](const Callable& f) {
    Tensors in{at::arange(12, at::kFloat).view({3, 4}), at::zeros(4), at::ones(4)};
    std::vector<int64_t> before{in[1]._version(), in[2]._version()};
    f(in);
    return std::tuple(in[1]._version() - before[0], in[2]._version() - before[1], in[1].norm().item<float>());
  };
  EXPECT_EQ(versions(Compiled(fn, {})), versions(fn));
}

TEST(Writes, OneBatchNormCalledTwiceBeforeTheBackward) {
  torch::nn::BatchNorm1d plain(3), twin(3);
  Compiled fast([&](const Tensors& in) { return Tensors{twin(in[0].sin())}; }, {});
  at::Tensor a = torch::randn({4, 3}), b = torch::randn({4, 3});
  (plain(a.sin()).square().sum() + plain(b.sin()).square().sum()).backward();
  (fast({a})[0].square().sum() + fast({b})[0].square().sum()).backward();
  EXPECT_TRUE(test::same_values(twin->weight.grad(), plain->weight.grad()));
  EXPECT_TRUE(test::same_values(twin->running_mean, plain->running_mean));
}

TEST(Writes, OfSavedInputsUseTheOldValues) {
  compare_both(
      [](const Tensors& in) {
        at::Tensor y = (in[0] * in[1]).sin();
        in[0].mul_(2);
        return Tensors{y};
      },
      [](bool rg) { return non_leaves({{3}, {3}}, {rg, false}); });
}

TEST(Writes, CapturedTensorsAreWrittenToo) {
  for (bool keep : {true, false}) {
    at::Tensor calls = torch::zeros({}, at::kLong), total = torch::zeros(3);
    Compiled fast(
        [&](const Tensors& in) {
          torch::NoGradGuard no_grad;
          calls.add_(1);
          total.slice(0, 0, 2).add_(in[0].slice(0, 1, 3));
          return Tensors{total * calls};
        },
        {.keep_input_mutations = keep});
    at::Tensor x = torch::arange(3.f);
    for (int64_t i = 1; i < 4; ++i) {
      at::Tensor got = fast({x})[0];
      EXPECT_EQ(calls.item<int64_t>(), i);
      EXPECT_TRUE(test::same_values(total, torch::tensor({1.f, 2.f, 0.f}) * i));
      EXPECT_TRUE(test::same_values(got, total * calls));
    }
  }
}

TEST(Writes, EveryWayToWriteAnElement) {
  auto three = [](bool rg) { return non_leaves({{3, 4}}, {rg}); };
  compare_both(
      [](const Tensors& in) {
        in[0][1].fill_(5);
        return Tensors{in[0].sin()};
      },
      three);
  compare_both(
      [](const Tensors& in) {
        in[0].index_put_({torch::tensor({0, 2})}, torch::ones({4}));
        return Tensors{in[0].sin()};
      },
      three);
  compare_both(
      [](const Tensors& in) {
        in[0].masked_fill_(in[0] > 1, 0.5);
        return Tensors{in[0].sin()};
      },
      three);
  compare_both(
      [](const Tensors& in) {
        in[0].diagonal().zero_();
        return Tensors{in[0] * 2};
      },
      three);
  compare_both(
      [](const Tensors& in) {
        in[0].copy_(in[0].flip({0}).to(at::kDouble));
        return Tensors{in[0] * 2};
      },
      three);
  compare_both(
      [](const Tensors& in) {
        in[0].scatter_(1, torch::zeros({3, 1}, at::kLong), 2.);
        return Tensors{in[0] * 2};
      },
      three);
  compare_both(
      [](const Tensors& in) {
        in[0].exponential_();
        return Tensors{in[0] * 2};
      },
      three);
  compare_both(
      [](const Tensors& in) {
        auto parts = in[0].chunk(2, 1);
        torch::NoGradGuard g;
        parts[1].mul_(3);
        return Tensors{in[0] + 1};
      },
      three);
}

}  // namespace
}  // namespace tandem
