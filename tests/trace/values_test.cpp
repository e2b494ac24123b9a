// Tensors that a program makes itself: constants, sizes, random numbers, modules.
#include "runtime/compare.h"

namespace tandem {
namespace {

using test::compare;
using test::compare_both;
using test::counter;
using test::leaf;
using test::leaves;
using test::same_values;

const test::Maker three = leaves({{3}}, {true});

TEST(TracedConstants, OfEveryMaking) {
  // How libtorch fills such a tensor, element by element, is counted in eager alone.
  compare(
      [](const Tensors& in) {
        return Tensors{in[0] * torch::tensor({1.f, 2.f, 3.f}), torch::tensor({{1, 2}, {3, 4}}),
                       torch::tensor(2.5)};
      },
      three, {.same_versions = false});
  compare(
      [](const Tensors& in) {
        return Tensors{in[0] * at::tensor(std::vector<float>{1, 2, 3}),
                       at::tensor(std::vector<int64_t>{4, 5})};
      },
      three);
  compare(
      [](const Tensors& in) {
        return Tensors{in[0] * torch::arange(3), torch::eye(3).mv(in[0]), torch::full({3}, 7),
                       torch::zeros_like(in[0])};
      },
      three);
  compare(
      [](const Tensors& in) {
        return Tensors{torch::linspace(0, 1, 3) + in[0], torch::logspace(0, 1, 3),
                       torch::hann_window(3) * in[0]};
      },
      three);
  compare(
      [](const Tensors& in) {
        return Tensors{in[0] * at::scalar_tensor(3), in[0] + 2, 1 - in[0], in[0] * 1e-3,
                       in[0].to(at::kLong) + 0.5};
      },
      three);
}

TEST(TracedConstants, FromTheStack) {
  compare(
      [](const Tensors& in) {
        float memory[3] = {1, 2, 4};
        at::Tensor table = torch::from_blob(memory, {3});
        at::Tensor out = in[0] * table;
        memory[0] = 100;
        return Tensors{out};
      },
      leaves({{3}}, {false}));
  compare(
      [](const Tensors& in) {
        float memory[4] = {1, 2, 3, 4};
        return Tensors{torch::from_blob(memory, {4}).clone() + 1,
                       in[0] * torch::from_blob(memory, {4}).slice(0, 1)};
      },
      leaves({{3}}, {false}));
}

TEST(TracedConstants, AreNotSharedBetweenCalls) {
  Compiled fast([](const Tensors& in) { return Tensors{torch::tensor({1.f, 2.f}), in[0] + 1}; }, {});
  at::Tensor first = fast({torch::ones(2)})[0];
  first.zero_();
  EXPECT_TRUE(same_values(fast({torch::ones(2)})[0], torch::tensor({1.f, 2.f})));
}

TEST(TracedConstants, WrittenAfterTheyWereMade) {
  compare(
      [](const Tensors& in) {
        at::Tensor table = torch::tensor({1.f, 2.f, 3.f});
        table[1] = 7;
        table.index_put_({torch::indexing::Slice(2)}, in[0][0].detach());
        return Tensors{in[0] * table, table};
      },
      three, {.same_versions = false});
  compare(
      [](const Tensors& in) {
        at::Tensor table = at::empty({3});
        float* data = table.data_ptr<float>();
        for (int i = 0; i < 3; ++i) data[i] = float(i);
        return Tensors{in[0] * table};
      },
      three);
}

TEST(TracedConstants, ScalarsMadeOfSizes) {
  Callable mean = [](const Tensors& in) {
    return Tensors{in[0].sum() / in[0].size(0), in[0] * std::sqrt(double(in[0].numel())),
                   torch::arange(in[0].size(0)) * in[0]};
  };
  compare(mean, three);
  Compiled fast(mean, {});
  for (int64_t size : {3, 5, 3}) {
    at::Tensor a = leaf({size});
    EXPECT_TRUE(same_values(fast({a})[0], mean({a})[0]));
  }
}

TEST(TracedConstants, ZeroDimensionalTensorsAmongTheOperands) {
  compare(
      [](const Tensors& in) {
        return Tensors{in[0] * in[1], in[1] + 1, at::where(in[0] > in[1], in[0], in[1])};
      },
      leaves({{3}, {}}, {true, true}));
}

// ---- random numbers

TEST(TracedRandom, TracingLeavesTheGeneratorsAlone) {
  Compiled fast(
      [](const Tensors& in) {
        return Tensors{torch::dropout(in[0], 0.5, true) + torch::rand(3) + torch::randn_like(in[0]) +
                       torch::randperm(3)};
      },
      {});
  at::Tensor a = leaf({3});
  torch::manual_seed(3);
  at::Tensor want = torch::rand(4);
  torch::manual_seed(3);
  fast.explain({a});
  EXPECT_TRUE(same_values(torch::rand(4), want));
}

TEST(TracedRandom, EqualSeedsGiveEqualDraws) {
  compare([](const Tensors& in) { return Tensors{torch::dropout(in[0], 0.5, true)}; },
          leaves({{50}}, {true}));
  compare(
      [](const Tensors& in) {
        return Tensors{torch::rand({3}) * in[0], torch::randint(10, {4}), torch::randn_like(in[0]),
                       torch::randperm(6)};
      },
      three);
  compare(
      [](const Tensors& in) {
        return Tensors{in[0] * torch::empty({3}).bernoulli_(0.5), torch::empty({2}).uniform_(-1, 1)};
      },
      three);
  // libtorch counts a write inside this one, which is one operator here.
  compare([](const Tensors& in) { return Tensors{in[0] * 2, at::normal(0., 1., {3})}; }, three,
          {.same_versions = false});
  compare(
      [](const Tensors& in) {
        return Tensors{torch::bernoulli(in[0].sigmoid()), torch::multinomial(in[0].softmax(0), 2),
                       torch::rrelu(in[0], 0.1, 0.3, true)};
      },
      three);
  compare(
      [](const Tensors& in) {
        return Tensors{torch::alpha_dropout(in[0], 0.3, true),
                       torch::feature_dropout(in[0].view({1, 3, 1}), 0.5, true)};
      },
      three);
}

TEST(TracedRandom, EveryCallDrawsAnew) {
  Compiled fast([](const Tensors& in) { return Tensors{torch::rand(8) + in[0]}; }, {});
  at::Tensor a = torch::zeros(8);
  EXPECT_FALSE(at::equal(fast({a})[0], fast({a})[0]));
}

TEST(TracedRandom, DrawsOfOneKindStayApart) {
  Compiled fast([](const Tensors& in) { return Tensors{torch::rand(8) + in[0], torch::rand(8) + in[0]}; },
                {});
  Tensors out = fast({torch::zeros(8)});
  EXPECT_FALSE(at::equal(out[0], out[1]));
}

TEST(TracedRandom, AGeneratorOfTheProgramsOwn) {
  auto draw = [](auto&& run) {
    at::Generator generator = at::detail::createCPUGenerator(5);
    return run(generator);
  };
  auto body = [](const at::Generator& generator, const Tensors& in) {
    return Tensors{in[0] + at::rand({3}, generator)};
  };
  at::Tensor a = leaf({3});
  at::Tensor want = draw([&](at::Generator& g) { return body(g, {a})[0]; });
  at::Tensor got = draw(
      [&](at::Generator& g) { return Compiled([&](const Tensors& in) { return body(g, in); }, {})({a})[0]; });
  EXPECT_TRUE(same_values(got, want));
}

// ---- modules

TEST(TracedModules, BuiltInside) {
  compare([](const Tensors& in) { return Tensors{torch::nn::Linear(3, 2)(in[0])}; },
          leaves({{4, 3}}, {true}));
}

TEST(TracedModules, WithStateOfTheirOwn) {
  torch::nn::Sequential plain(torch::nn::Conv2d(2, 3, 3), torch::nn::BatchNorm2d(3),
                              torch::nn::ReLU(torch::nn::ReLUOptions(true)), torch::nn::Flatten(),
                              torch::nn::Linear(12, 2));
  auto twin = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(plain->clone());
  Compiled fast([&](const Tensors& in) { return Tensors{twin->forward(in[0])}; },
                {.backend = "debug", .watch = {twin}});
  for (int step = 0; step < 3; ++step) {
    at::Tensor x = torch::randn({2, 2, 4, 4});
    at::Tensor want = plain->forward(x), got = fast({x})[0];
    EXPECT_TRUE(same_values(got, want));
    want.square().sum().backward();
    got.square().sum().backward();
    for (size_t i = 0; i < plain->parameters().size(); ++i)
      EXPECT_TRUE(same_values(twin->parameters()[i].grad(), plain->parameters()[i].grad())) << i;
    for (size_t i = 0; i < plain->buffers().size(); ++i)
      EXPECT_TRUE(same_values(twin->buffers()[i], plain->buffers()[i])) << i;
  }
}

}  // namespace
}  // namespace tandem
