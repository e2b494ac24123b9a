// Functions that write their inputs; the names cite rows of the table of behaviours.
#include "runtime/compare.h"

namespace tandem {
namespace {

using test::compare;
using test::compare_both;
using test::leaf;
using test::leaves;
using test::Maker;
using test::non_leaves;
using test::Scene;

Maker square(bool requires_grad) { return non_leaves({{3, 3}}, {requires_grad}); }

TEST(Writes, B1_AWriteThenAUse) {
  compare_both([](const Tensors& in) { in[0].mul_(2); return Tensors{in[0] * 3}; }, square);
}

TEST(Writes, B2_TheWrittenInputIsReturned) {
  compare_both([](const Tensors& in) { in[0].mul_(2); return Tensors{in[0]}; }, square);
}

TEST(Writes, AWriteGivesTheOldContentsNoGradientOfItsOwn) {
  Callable zeros = [](const Tensors& in) { in[0].mul_(at::zeros({2})); return Tensors{in[0]}; };
  auto gradient = [](const Callable& f) {
    at::Tensor x = at::ones({2}).requires_grad_();
    at::Tensor y = f({x.clone()})[0];
    return torch::autograd::grad({y}, {x}, {at::full({2}, -1.0)})[0].signbit();
  };
  EXPECT_TRUE(at::equal(gradient(Compiled(zeros, {})), gradient(zeros)));
}

TEST(Writes, B3_TwoOfThreeAreWritten) {
  compare_both([](const Tensors& in) { in[0].mul_(2); in[2].mul_(2); return Tensors{in[0] + in[1] + in[2]}; },
               [](bool rg) { return non_leaves({{3, 3}, {3, 3}, {3, 3}}, {rg, rg, rg}); });
}

TEST(Writes, B4_AnOutArgument) {
  compare([](const Tensors& in) { at::Tensor out = in[1]; at::sin_out(out, in[0]); return Tensors{out}; }, non_leaves({{3}, {3}}, {false, false}));
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

TEST(Writes, B6_ThroughAViewMadeOutside) {
  auto strided = [](bool rg, auto view) -> Maker {
    return [=] {
      Scene scene = non_leaves({{4, 4}}, {rg})();
      scene.others = scene.arguments;
      scene.arguments[0] = view(scene.others[0]);
      return scene;
    };
  };
  compare_both([](const Tensors& in) { in[0].add_(1); return Tensors{}; }, [&](bool rg) { return strided(rg, [](at::Tensor x) { return x.slice(0, 0, 4, 2); }); });
  compare_both([](const Tensors& in) { in[0].mul_(2); return Tensors{in[0] + 1}; }, [&](bool rg) { return strided(rg, [](at::Tensor x) { return x.select(1, 0); }); });
}

TEST(Writes, B7_AnOuterViewSeesTheWrite) {
  for (bool keep : {true, false}) {
    Callable fn = [](const Tensors& in) { in[0].mul_(2); return Tensors{(in[0] + 1).detach()}; };
    Compiled fast(fn, {.keep_input_mutations = keep});
    struct World {
      at::Tensor leaf, x, v;
    };
    auto run = [](const Callable& f) {
      torch::manual_seed(1);
      World w;
      w.leaf = test::leaf({4});
      w.x = w.leaf + 0;
      w.v = w.x.view({2, 2});
      f({w.x});
      return w;
    };
    World want = run(fn), got = run([&](const Tensors& in) { return fast(in); });
    EXPECT_TRUE(test::same_tensor(got.v, want.v));
    EXPECT_EQ(got.v._version(), want.v._version());
    EXPECT_EQ(got.v.grad_fn()->name(), want.v.grad_fn()->name());
    (got.x * got.v.view({4})).sum().backward();
    (want.x * want.v.view({4})).sum().backward();
    EXPECT_TRUE(test::same_values(got.leaf.grad(), want.leaf.grad()));
  }
}

TEST(Writes, B8_SizesAndStridesInPlace) {
  auto two = [](bool rg) { return non_leaves({{2, 3}, {3, 2}}, {rg, rg}); };
  compare_both([](const Tensors& in) { in[0].transpose_(1, 0); return Tensors{in[0] + in[1]}; }, two);
  compare_both([](const Tensors& in) { in[0].transpose_(1, 0); in[0].mul_(2); return Tensors{in[0] + 1}; }, two);
  compare_both([](const Tensors& in) { in[0].unsqueeze_(0); in[0].squeeze_(0); in[1].t_(); return Tensors{in[0] * in[1]}; }, two, {.compiled = false});
}

TEST(Writes, B10_BehindAutogradsBack) {
  Callable fn = [](const Tensors& in) { in[0].detach().mul_(2); return Tensors{in[0] + 3}; };
  compare(fn, leaves({{3}}, {true}));
  compare(fn, non_leaves({{3}}, {true}));
  compare(fn, leaves({{3}}, {false}));
}

TEST(Writes, B11_UnderNoGrad) {
  Callable inside = [](const Tensors& in) {
    {
      torch::NoGradGuard no_grad;
      in[0].mul_(2);
    }
    return Tensors{in[0] + 3};
  };
  Callable all = [](const Tensors& in) {
    torch::NoGradGuard no_grad;
    in[0].mul_(2);
    return Tensors{in[0] + 3};
  };
  compare(inside, non_leaves({{3}}, {true}));
  compare(inside, leaves({{3}}, {true}));
  compare(all, non_leaves({{3}}, {true}));
  Explanation training = Compiled(inside, {}).explain(non_leaves({{3}}, {true})().arguments);
  EXPECT_TRUE(training.contract.inputs[0].write_kept);
  EXPECT_FALSE(training.backward.empty());
  Explanation inference = Compiled(all, {}).explain(non_leaves({{3}}, {true})().arguments);
  EXPECT_TRUE(inference.contract.inputs[0].write_kept);
  EXPECT_TRUE(inference.backward.empty());
}

TEST(Writes, B14_AnInputStartsToRequireGrad) {
  Callable fn = [](const Tensors& in) { return Tensors{in[0].add_(in[1])}; };
  compare(fn, leaves({{3}, {3}}, {false, true}));
  EXPECT_FALSE(Compiled(fn, {}).explain(leaves({{3}, {3}}, {false, true})().arguments).contract.inputs[0].write_kept);
}

TEST(Writes, B15_RequiresGradSetInside) {
  compare([](const Tensors& in) { in[0].requires_grad_(true); return Tensors{in[0] * 3, in[1] * 4}; }, [] {
    Scene scene = leaves({{3}, {3}}, {false, true})();
    scene.leaves.push_back(scene.arguments[0]);
    return scene;
  });
}

TEST(Writes, B16_ADetachedAliasSeesTheWrite) {
  compare_both([](const Tensors& in) { at::Tensor tmp = in[0].detach(); in[0].mul_(2); return Tensors{in[0], tmp}; }, square);
}

TEST(Writes, B17_RunningStatistics) {
  auto inputs = [](bool rg) -> Maker {
    return [rg] {
      Scene scene = leaves({{4, 3}, {3}, {3}}, {rg, rg, rg})();
      scene.arguments.push_back(torch::zeros(3));
      scene.arguments.push_back(torch::ones(3));
      return scene;
    };
  };
  Callable fn = [](const Tensors& in) { return Tensors{torch::batch_norm(in[0], in[1], in[2], in[3], in[4], true, 0.1, 1e-5, false)}; };
  compare_both(fn, inputs);
  Callable used = [fn](const Tensors& in) { Tensors out = fn(in); out.push_back(in[3] * in[1]); return out; };
  compare_both(used, inputs);
  Callable eval = [](const Tensors& in) { return Tensors{torch::batch_norm(in[0], in[1], in[2], in[3], in[4], false, 0.1, 1e-5, false)}; };
  compare_both(eval, inputs);
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
  compare_both([](const Tensors& in) { at::Tensor y = (in[0] * in[1]).sin(); in[0].mul_(2); return Tensors{y}; },
               [](bool rg) { return non_leaves({{3}, {3}}, {rg, false}); });
}

TEST(Writes, CapturedTensorsAreWrittenToo) {
  for (bool keep : {true, false}) {
    at::Tensor calls = torch::zeros({}, at::kLong), total = torch::zeros(3);
    Compiled fast([&](const Tensors& in) {
      torch::NoGradGuard no_grad;
      calls.add_(1);
      total.slice(0, 0, 2).add_(in[0].slice(0, 1, 3));
      return Tensors{total * calls};
    }, {.keep_input_mutations = keep});
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
  compare_both([](const Tensors& in) { in[0][1].fill_(5); return Tensors{in[0].sin()}; }, three);
  compare_both([](const Tensors& in) { in[0].index_put_({torch::tensor({0, 2})}, torch::ones({4})); return Tensors{in[0].sin()}; }, three);
  compare_both([](const Tensors& in) { in[0].masked_fill_(in[0] > 1, 0.5); return Tensors{in[0].sin()}; }, three);
  compare_both([](const Tensors& in) { in[0].diagonal().zero_(); return Tensors{in[0] * 2}; }, three);
  compare_both([](const Tensors& in) { in[0].copy_(in[0].flip({0}).to(at::kDouble)); return Tensors{in[0] * 2}; }, three);
  compare_both([](const Tensors& in) { in[0].scatter_(1, torch::zeros({3, 1}, at::kLong), 2.); return Tensors{in[0] * 2}; }, three);
  compare_both([](const Tensors& in) { in[0].exponential_(); return Tensors{in[0] * 2}; }, three);
  compare_both([](const Tensors& in) { auto parts = in[0].chunk(2, 1); torch::NoGradGuard g; parts[1].mul_(3); return Tensors{in[0] + 1}; }, three);
}

}  // namespace
}  // namespace tandem
