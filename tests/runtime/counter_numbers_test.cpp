// Functions whose random numbers are counter-based (Options::random): reproducible, the same in every
// derivative.
#include "runtime/checkpoint.h"
#include "runtime/compare.h"

namespace tandem::counted {
namespace {

using test::Checkpoint;
using test::contains;
using test::counter;
using test::part;
using test::same_values;
using test::set_state;
using test::state;

bool has_call(const Graph& graph, const std::string& name) {
  const auto& nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const Node& node) { return node.op.operator_name().name == name; });
}

bool draws_from_generator(const Graph& graph) {
  const auto& nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) {
    return node.op.hasTag(at::Tag::nondeterministic_seeded) &&
           node.op.operator_name().name != "tandem::counter_seed";
  });
}

Tensors seeded(uint64_t seed, const Callable& fn, const Tensors& in) {
  torch::manual_seed(seed);
  return fn(in);
}

Tensors with_gradient(const Callable& fn, const at::Tensor& x) {
  Tensors out = fn({x});
  out.push_back(torch::autograd::grad({out[0].sum()}, {x})[0]);
  return out;
}

bool all_equal(const Tensors& a, const Tensors& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [](const at::Tensor& x, const at::Tensor& y) { return at::equal(x, y); });
}

Tensors dropped(const Tensors& in) {
  return {torch::dropout(in[0], 0.25, true) * in[0].sin() + torch::dropout(in[0], 0.5, true),
          torch::rand_like(in[0])};
}

at::Tensor numbers(int64_t count = 64) { return torch::arange(1, count + 1, at::kFloat).requires_grad_(); }

bool is_counted(const Compiled& fast, const Tensors& in) {
  const Graph joint = fast.explain(in).joint;
  return has_call(joint, "tandem::counter_seed") && !draws_from_generator(joint);
}

/// Compiles with each combination, and gives it to `check`.
void for_each_way(const Callable& fn, const std::function<void(const Compiled&)>& check) {
  for (const char* backend : {"eager", "debug"})
    for (const char* partitioner : {"min_cut", "default", "recompute_all", "save_all"}) {
      SCOPED_TRACE(std::string(backend) + ", " + partitioner);
      check(Compiled(
          fn, {.backend = backend, .partitioner = partitioner, .random = "counter", .must_compile = true}));
    }
}

}  // namespace

TEST(CounterNumbers, TheSeedDecidesAndCallsAndDrawsDiffer) {
  Tensors first;
  for_each_way(dropped, [&](const Compiled& fast) {
    const at::Tensor x = numbers();
    auto run = [&](const Tensors& in) { return with_gradient(fast, in[0]); };
    const Tensors one = seeded(1, run, {x}), next = run({x});
    EXPECT_TRUE(all_equal(one, seeded(1, run, {x})));
    EXPECT_TRUE(all_equal(next, run({x})));
    if (first.empty()) first = one;
    EXPECT_TRUE(all_equal(one, first));
    for (const Tensors& other : {next, seeded(2, run, {x})})
      for (size_t i = 0; i < one.size(); ++i) EXPECT_FALSE(at::equal(one[i], other[i])) << i;
    EXPECT_TRUE(is_counted(fast, {x})) << fast.explain({x}).joint.to_string();
  });
}

TEST(CounterNumbers, EveryCallMovesTheGeneratorOnByTwoNumbers) {
  for (const bool grad : {true, false}) {
    at::AutoGradMode mode(grad);
    const Compiled fast(dropped, {.random = "counter"});
    for (int64_t count : {1, 64, 1000}) {
      fast({numbers(count)});
      torch::manual_seed(5);
      auto* generator = at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator());
      generator->random64(), generator->random64();
      const at::Tensor want = state();
      torch::manual_seed(5);
      const at::Tensor y = fast({numbers(count)})[0];
      EXPECT_TRUE(at::equal(state(), want)) << count;
      if (grad) y.sum().backward();
      EXPECT_TRUE(at::equal(state(), want)) << count;
    }
  }
}

TEST(CounterNumbers, AFunctionThatDrawsNothingLeavesTheGeneratorAlone) {
  const Compiled fast([](const Tensors& in) { return Tensors{torch::dropout(in[0].sin(), 0.5, false)}; },
                      {.random = "counter"});
  const at::Tensor before = state();
  with_gradient(fast, numbers());
  EXPECT_TRUE(at::equal(state(), before));
}

TEST(CounterNumbers, TheBackwardHasTheMaskOfTheForward) {
  const at::Tensor w = torch::randn(4096);
  for_each_way([&](const Tensors& in) { return Tensors{torch::dropout(in[0], 0.25, true) * w}; },
               [&](const Compiled& fast) {
                 const at::Tensor x = numbers(4096);
                 const Tensors got = with_gradient(fast, x);
                 EXPECT_TRUE(is_counted(fast, {x}));
                 const at::Tensor kept = got[0].ne(0);
                 EXPECT_NEAR(kept.to(at::kDouble).mean().item<double>(), 0.75,
                             5 * std::sqrt(0.75 * 0.25 / 4096));
                 EXPECT_TRUE(at::equal(got[1], kept.to(at::kFloat).div(0.75) * w));
                 EXPECT_TRUE(at::equal(got[0], x * kept.to(at::kFloat).div(0.75) * w));
               });
}

TEST(CounterNumbers, NativeDropoutIsTheProductWithItsMask) {
  auto fn = [](const Tensors& in) {
    auto [out, mask] = at::native_dropout(in[0], 0.4, true);
    return Tensors{out, mask};
  };
  for_each_way(fn, [&](const Compiled& fast) {
    const at::Tensor x = numbers();
    const Tensors got = with_gradient(fast, x);
    EXPECT_TRUE(is_counted(fast, {x}));
    EXPECT_TRUE(at::equal(got[0], x * got[1] * (1 / 0.6)));
    EXPECT_TRUE(at::allclose(got[2], got[1] * (1 / 0.6)));
  });
}

TEST(CounterNumbers, AreSavedWhereNothingElseIsAskedFor) {
  auto fn = [](const Tensors& in) { return Tensors{torch::dropout(in[0].sin(), 0.5, true).exp()}; };
  const Explanation explained = Compiled(fn, {.random = "counter"}).explain({numbers(1000)});
  EXPECT_FALSE(has_call(explained.backward, "tandem::counter_uniform"));
  EXPECT_EQ(explained.saved_bytes, 1000 * 4);
}

TEST(CounterNumbers, DrawnAgainTheyAreTheSameAndOnlyTheSeedIsSaved) {
  auto fn = [](const Tensors& in) { return Tensors{torch::dropout(in[0].sin(), 0.5, true).exp()}; };
  const at::Tensor x = numbers(1000);
  const Compiled fast(fn, {.partitioner = "recompute_all", .random = "counter"}),
      saving(fn, {.random = "counter"});
  const Explanation explained = fast.explain({x});
  EXPECT_TRUE(has_call(explained.forward, "tandem::counter_uniform") &&
              has_call(explained.backward, "tandem::counter_uniform"));
  EXPECT_FALSE(has_call(explained.backward, "tandem::counter_seed"));
  EXPECT_EQ(explained.saved_bytes, 16);
  auto run = [&](const Compiled& compiled) {
    return seeded(3, [&](const Tensors& in) { return with_gradient(compiled, in[0]); }, {x});
  };
  EXPECT_TRUE(all_equal(run(fast), run(saving)));
}

TEST(CounterNumbers, AreTheSameWithoutGradMode) {
  const Compiled fast(dropped, {.random = "counter", .must_compile = true});
  const Tensors want = seeded(4, fast, {numbers()});
  {
    torch::NoGradGuard no_grad;
    EXPECT_TRUE(all_equal(seeded(4, fast, {numbers()}), want));
  }
  c10::InferenceMode inference;
  EXPECT_TRUE(all_equal(seeded(4, fast, {numbers()}), want));
}

/// What each draw is like: how many numbers, and their mean and variance.
TEST(CounterNumbers, EveryDrawHasItsDistribution) {
  constexpr int64_t count = 1 << 16;
  struct {
    const char* name;
    std::function<at::Tensor(at::Tensor)> draw;
    double mean, variance, least, most;
  } const draws[] = {
      {"rand", [](at::Tensor x) { return torch::rand_like(x); }, 0.5, 1. / 12, 0, 1},
      {"rand of sizes", [](at::Tensor) { return torch::rand({count}); }, 0.5, 1. / 12, 0, 1},
      {"randn", [](at::Tensor x) { return torch::randn_like(x); }, 0, 1, -6, 6},
      {"randn of sizes", [](at::Tensor) { return torch::randn({count}, at::kDouble); }, 0, 1, -6, 6},
      {"uniform_", [](at::Tensor x) { return torch::empty_like(x).uniform_(-2, 4); }, 1, 3, -2, 4},
      {"normal_", [](at::Tensor x) { return torch::empty_like(x).normal_(1, 3); }, 1, 9, -20, 20},
      {"bernoulli_", [](at::Tensor x) { return torch::empty_like(x).bernoulli_(0.2); }, 0.2, 0.16, 0, 1},
      {"bernoulli of numbers", [](at::Tensor x) { return torch::bernoulli(torch::full_like(x, 0.7)); }, 0.7,
       0.21, 0, 1},
      {"bernoulli_ of numbers",
       [](at::Tensor x) { return torch::empty_like(x, at::kInt).bernoulli_(torch::full_like(x, 0.7)); }, 0.7,
       0.21, 0, 1},
      {"bernoulli_ of truths", [](at::Tensor x) { return torch::empty_like(x, at::kBool).bernoulli_(0.5); },
       0.5, 0.25, 0, 1},
      {"exponential_", [](at::Tensor x) { return torch::empty_like(x).exponential_(2); }, 0.5, 0.25, 1e-30,
       20},
      {"randint", [](at::Tensor) { return torch::randint(6, {count}); }, 2.5, 35. / 12, 0, 5},
      {"randint between", [](at::Tensor) { return torch::randint(-3, 4, {count}, at::kInt); }, 0, 4, -3, 3},
      {"alpha_dropout",
       [](at::Tensor x) {
         return torch::alpha_dropout(torch::zeros_like(x), 0.5, true)
             .ne(torch::alpha_dropout(torch::zeros_like(x), 0.5, true));
       },
       0.5, 0.25, 0, 1},
      {"half precision", [](at::Tensor x) { return torch::rand_like(x, at::kHalf); }, 0.5, 1. / 12, 0,
       0.9999},
  };
  for (const auto& one : draws) {
    SCOPED_TRACE(one.name);
    const Compiled fast([&](const Tensors& in) { return Tensors{one.draw(in[0])}; },
                        {.random = "counter", .must_compile = true});
    const at::Tensor x = numbers(count).detach(), got = seeded(8, fast, {x})[0], eager = one.draw(x);
    EXPECT_TRUE(same_values(seeded(8, fast, {x})[0], got));
    EXPECT_FALSE(draws_from_generator(fast.explain({x}).forward)) << fast.explain({x}).forward.to_string();
    EXPECT_EQ(got.scalar_type(), eager.scalar_type());
    EXPECT_EQ(got.sizes(), eager.sizes());
    const at::Tensor drawn = got.to(at::kDouble);
    EXPECT_NEAR(drawn.mean().item<double>(), one.mean, 5 * std::sqrt(one.variance / count) + 1e-3);
    EXPECT_NEAR(drawn.var().item<double>(), one.variance, 0.05 * one.variance);
    EXPECT_GE(drawn.min().item<double>(), one.least);
    EXPECT_LE(drawn.max().item<double>(), one.most);
  }
}

TEST(CounterNumbers, WhatIsNoProbabilityIsRefusedAsByLibtorch) {
  const Compiled fast([](const Tensors& in) { return Tensors{torch::bernoulli(in[0])}; },
                      {.random = "counter"});
  EXPECT_NO_THROW(fast({torch::rand(5)}));
  EXPECT_THROW(fast({torch::full(5, 1.5f)}), c10::Error);
  EXPECT_THROW(fast({torch::full(5, std::nanf(""))}), c10::Error);
}

TEST(CounterNumbers, ASecondDerivativeHasTheMaskToo) {
  auto fn = [](const Tensors& in) { return Tensors{torch::dropout(in[0], 0.5, true).pow(3)}; };
  for (const char* partitioner : {"min_cut", "default", "recompute_all", "save_all"}) {
    SCOPED_TRACE(partitioner);
    const Compiled fast(fn, {.partitioner = partitioner, .random = "counter"});
    const at::Tensor x = numbers(), y = fast({x})[0], mask = y.detach().ne(0).to(at::kFloat) * 2;
    const at::Tensor gradient = torch::autograd::grad({y.sum()}, {x}, {}, true, true)[0];
    EXPECT_TRUE(is_counted(fast, {x}));
    EXPECT_TRUE(at::allclose(gradient, 3 * x.square() * mask.pow(3)));
    EXPECT_TRUE(at::allclose(torch::autograd::grad({gradient.sum()}, {x})[0], 6 * x * mask.pow(3)));
  }
}

TEST(CounterNumbers, BackwardsOfOtherGradientsHaveThemToo) {
  auto fn = [](const Tensors& in) {
    return Tensors{torch::dropout(in[0], 0.5, true) * in[1], torch::dropout(in[1], 0.5, true).square()};
  };
  for (const char* partitioner : {"min_cut", "default", "recompute_all", "save_all"}) {
    SCOPED_TRACE(partitioner);
    const Compiled fast(fn, {.partitioner = partitioner, .random = "counter"});
    const at::Tensor x = numbers(), w = numbers();
    auto run = [&] { return seeded(6, fast, {x, w}); };
    const Tensors out = run();
    EXPECT_TRUE(is_counted(fast, {x, w}));
    const at::Tensor one = out[0].detach().ne(0).to(at::kFloat) * 2,
                     two = out[1].detach().ne(0).to(at::kFloat) * 2;
    EXPECT_TRUE(at::allclose(torch::autograd::grad({out[0].sum()}, {x})[0], one * w));
    EXPECT_TRUE(at::allclose(torch::autograd::grad({run()[1].sum()}, {w})[0], 2 * w * two.square()));
    EXPECT_TRUE(at::allclose(torch::autograd::grad({run()[0].sum()}, {w})[0], x * one));
    const Tensors again = run();
    EXPECT_TRUE(at::allclose(torch::autograd::grad({again[0].sum() + again[1].sum()}, {w})[0],
                             x * one + 2 * w * two.square()));
  }
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor part_with_poisson(const at::Tensor& x) {
  return torch::dropout(x.sin(), 0.5, true) * torch::poisson(x.detach()) * torch::rand_like(x);
}

template <at::Tensor (*fn)(const at::Tensor&)>
Tensors plain(const Tensors& in) {
  return {fn(torch::dropout(in[0], 0.1, true)) * torch::rand_like(in[0])};
}
template <at::Tensor (*fn)(const at::Tensor&)>
Tensors checkpointed(const Tensors& in) {
  return {Checkpoint<fn>::apply(torch::dropout(in[0], 0.1, true)) * torch::rand_like(in[0])};
}

void expect_same_as_plain(const Callable& checkpointed, const Callable& plain, bool all_counted) {
  const at::Tensor x = numbers(16);
  const Compiled wanted(plain, {.random = "counter", .must_compile = true});
  const Tensors want = seeded(7, [&](const Tensors& in) { return with_gradient(wanted, in[0]); }, {x});
  for_each_way(checkpointed, [&](const Compiled& fast) {
    const Tensors got = seeded(7, [&](const Tensors& in) { return with_gradient(fast, in[0]); }, {x});
    for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(at::equal(got[i], want[i])) << i;
    EXPECT_EQ(is_counted(fast, {x}), all_counted);
  });
}

/// Draws other numbers from a state than it drew from it before.
Tensors drawn_otherwise(const Tensors& in) {
  const at::Tensor before = state(), first = torch::rand({3}), live = state();
  set_state(before);
  const at::Tensor other = torch::rand({5});
  set_state(live);
  return {in[0] * other.sum() * first.sum()};
}

struct NoisyGradient : torch::autograd::Function<NoisyGradient> {
  static at::Tensor forward(AutogradContext*, at::Tensor x) { return torch::dropout(x, 0.5, true); }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    return {gradients[0] * torch::rand_like(gradients[0])};
  }
};

/// Of one who likes counters and knows nothing of states.
class Counting final : public Backend {
 public:
  std::string name() const override { return "counting"; }
  std::string version() const override { return "1"; }
  bool prefers_counter_numbers() const override { return true; }
  std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext& context) override {
    for (const Node& node : graph.nodes()) EXPECT_FALSE(node.state);
    return find_backend("eager")->compile(graph, context);
  }
};

}  // namespace

TEST(CounterNumbers, ACheckpointHasThoseOfThePlainFunction) {
  expect_same_as_plain(checkpointed<part>, plain<part>, true);
}
TEST(CounterNumbers, ACheckpointWithADrawThatStaysLibtorchsHasThoseOfThePlainFunction) {
  expect_same_as_plain(checkpointed<part_with_poisson>, plain<part_with_poisson>, false);
}

TEST(CounterNumbers, AFunctionThatDrawsOtherNumbersAgainRunsAsItIs) {
  const Compiled fast(drawn_otherwise, {.random = "counter"});
  const at::Tensor x = numbers(4);
  auto eager = [](const Tensors& in) { return with_gradient(drawn_otherwise, in[0]); };
  auto compiled = [&](const Tensors& in) { return with_gradient(fast, in[0]); };
  EXPECT_TRUE(all_equal(seeded(1, compiled, {x}), seeded(1, eager, {x})));
  EXPECT_TRUE(contains(fast.explain({x}).eager_reason, "Options::random")) << fast.explain({x}).eager_reason;
  EXPECT_EQ(Compiled(drawn_otherwise, {}).explain({x}).eager_reason, "");
}

TEST(CounterNumbers, WhatABackwardDrawsIsDrawnAtEveryBackward) {
  const Compiled fast([](const Tensors& in) { return Tensors{NoisyGradient::apply(in[0])}; },
                      {.random = "counter", .must_compile = true});
  const at::Tensor x = numbers(), y = fast({x})[0].sum();
  auto gradient = [&] { return torch::autograd::grad({y}, {x}, {}, /*retain_graph=*/true)[0]; };
  EXPECT_FALSE(at::equal(gradient(), gradient()));
  EXPECT_TRUE(has_call(fast.explain({x}).forward, "tandem::counter_uniform"));
  EXPECT_TRUE(draws_from_generator(fast.explain({x}).backward));
}

TEST(CounterNumbers, AreWhatABackendPrefersWhereTheUserDoesNotSay) {
  register_backend(std::make_shared<Counting>());
  const at::Tensor x = numbers(16);
  const Compiled open(checkpointed<part>, {.backend = "counting"}),
      libtorchs(dropped, {.backend = "counting", .random = "libtorch"});
  EXPECT_TRUE(has_call(open.explain({x}).joint, "tandem::counter_seed")) << open.explain({x}).eager_reason;
  EXPECT_TRUE(all_equal(seeded(1, libtorchs, {x}), seeded(1, dropped, {x})));
  const Compiled eager(dropped, {});
  EXPECT_TRUE(all_equal(seeded(1, eager, {x}), seeded(1, dropped, {x})));
}

TEST(CounterNumbers, AStepOfTrainingIsReproducible) {
  auto train = [](const Options& options) {
    torch::manual_seed(2);
    torch::nn::Sequential model(torch::nn::Linear(8, 32), torch::nn::ReLU(), torch::nn::Dropout(0.3),
                                torch::nn::Linear(32, 1));
    torch::optim::SGD optimizer(model->parameters(), 0.01);
    const Compiled step(
        [&](const Tensors& in) { return Tensors{(model->forward(in[0]) - in[1]).square().mean()}; }, options);
    Tensors losses;
    for (int i = 0; i < 6; ++i) {
      optimizer.zero_grad();
      losses.push_back(step({torch::randn({16, 8}), torch::randn({16, 1})})[0]);
      losses.back().backward();
      optimizer.step();
    }
    for (const at::Tensor& parameter : model->parameters()) losses.push_back(parameter.detach());
    return losses;
  };
  const Tensors one = train({.random = "counter"});
  EXPECT_TRUE(all_equal(one, train({.random = "counter"})));
  EXPECT_TRUE(all_equal(one, train({.partitioner = "recompute_all", .random = "counter"})));
  EXPECT_FALSE(all_equal(one, train({.random = "libtorch"})));
}

}  // namespace tandem::counted
