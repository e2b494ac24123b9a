// Many calls of one compiled function: gradients that gather, optimisers that write between the calls, and
// writes that come too early.
#include "runtime/compare.h"

#include <torch/optim.h>

namespace tandem {
namespace {

using test::contains;
using test::leaf;
using test::message;
using test::same_values;

/// A small model as it is, and a twin of it whose loss is compiled.
struct Pair {
  torch::nn::Sequential plain = make(), twin = make();
  Compiled fast =
      Compiled([this](const Tensors& in) { return Tensors{loss(twin, in)}; }, {.watch = {twin.ptr()}});

  static torch::nn::Sequential make() {
    torch::manual_seed(5);
    return torch::nn::Sequential(torch::nn::Linear(4, 6), torch::nn::BatchNorm1d(6), torch::nn::GELU(),
                                 torch::nn::Dropout(0.2), torch::nn::Linear(6, 1));
  }
  static at::Tensor loss(torch::nn::Sequential& model, const Tensors& in) {
    return torch::mse_loss(model->forward(in[0]), in[1]);
  }

  /// The same numbers for both.
  void both(int seed, const std::function<void(torch::nn::Sequential&, const Callable& loss)>& step) {
    torch::manual_seed(seed);
    step(plain, [&](const Tensors& in) { return Tensors{loss(plain, in)}; });
    torch::manual_seed(seed);
    step(twin, [&](const Tensors& in) { return fast(in); });
  }

  void expect_equal(const std::string& when) const {
    auto compare = [&](const auto& want, const auto& got) {
      for (const auto& item : want)
        EXPECT_TRUE(same_values(*got.find(item.key()), item.value())) << item.key() << " " << when;
    };
    compare(plain->named_parameters(), twin->named_parameters());
    compare(plain->named_buffers(), twin->named_buffers());
    for (size_t i = 0; i < plain->parameters().size(); ++i)
      EXPECT_TRUE(same_values(twin->parameters()[i].grad(), plain->parameters()[i].grad()))
          << "gradient " << i << " " << when;
  }
  void expect_compiled_once() {
    EXPECT_EQ(fast.explain({torch::randn({5, 4}), torch::randn({5, 1})}).eager_reason, "");
  }
};

Tensors batch() { return {torch::randn({5, 4}), torch::randn({5, 1})}; }

// ---- gradients that gather

TEST(Accumulation, OverSeveralCallsAndBothWaysOfForgetting) {
  Pair pair;
  for (int step = 0; step < 6; ++step) {
    pair.both(step, [&](torch::nn::Sequential& model, const Callable& loss) {
      for (int part = 0; part < 3; ++part) loss(batch())[0].backward();
      if (step % 3 == 1) model->zero_grad(/*set_to_none=*/true);
      if (step % 3 == 2) model->zero_grad(/*set_to_none=*/false);
    });
    pair.expect_equal("after step " + std::to_string(step));
  }
  pair.expect_compiled_once();
}

/// Where eager's gradients share memory with each other ours may, and where its do not ours must not: adding
/// to one would change the other.
TEST(Accumulation, GradientsThatAreOneTensorInsideAreAddedToApart) {
  const std::vector<Callable> functions = {
      [](const Tensors& in) { return Tensors{in[0] + in[1]}; },
      [](const Tensors& in) { return Tensors{in[0].view({4}) + in[1].view({4})}; },
      [](const Tensors& in) { return Tensors{in[0].sign() + in[1].sign()}; },
      [](const Tensors& in) { return Tensors{in[0].sin() + in[1].t()}; },
      [](const Tensors& in) { return Tensors{in[0].sum() + in[1].sum()}; },
      [](const Tensors& in) { return Tensors{in[0], in[1].view({4})}; },
  };
  for (const Callable& fn : functions) {
    Compiled fast(fn, {});
    auto run = [](const Callable& f) {
      torch::manual_seed(2);
      at::Tensor a = leaf({2, 2}), b = leaf({2, 2});
      Tensors seen;
      for (int i = 0; i < 3; ++i) {
        Tensors out = f({a, b});
        at::Tensor loss = torch::zeros({});
        for (const at::Tensor& o : out) loss = loss + o.square().sum();
        loss.backward();
        a.mutable_grad().add_(1);
        seen.insert(seen.end(), {a.grad().clone(), b.grad().clone()});
      }
      return seen;
    };
    Tensors want = run(fn), got = run([&](const Tensors& in) { return fast(in); });
    for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(same_values(got[i], want[i])) << i;
  }
}

TEST(Accumulation, IntoAGradientThatIsAViewOfAFlatBuffer) {
  Pair pair;
  for (torch::nn::Sequential* model : {&pair.plain, &pair.twin}) {
    int64_t total = 0, at = 0;
    for (const at::Tensor& p : (*model)->parameters()) total += p.numel();
    at::Tensor flat = torch::zeros(total);
    for (at::Tensor& p : (*model)->parameters()) {
      p.mutable_grad() = flat.slice(0, at, at + p.numel()).view_as(p);
      at += p.numel();
    }
  }
  for (int step = 0; step < 3; ++step)
    pair.both(step, [](torch::nn::Sequential&, const Callable& loss) { loss(batch())[0].backward(); });
  pair.expect_equal("after three steps");
  EXPECT_TRUE(pair.twin->parameters()[0].grad().is_alias_of(pair.twin->parameters()[1].grad()));
}

TEST(Accumulation, TheGradientIsTheCallersOwn) {
  Compiled fast([](const Tensors& in) { return Tensors{in[0] * 2}; }, {});
  at::Tensor a = leaf({3});
  for (int i = 0; i < 3; ++i) {
    fast({a})[0].sum().backward();
    EXPECT_TRUE(same_values(a.grad(), torch::full(3, 2.f)));
    a.mutable_grad().fill_(100);
    a.mutable_grad() = at::Tensor();
  }
}

// ---- optimisers

template <class Optimiser, class OptionsOf>
void expect_equal_training(const OptionsOf& options, bool closure) {
  Pair pair;
  Optimiser of_plain(pair.plain->parameters(), options), of_twin(pair.twin->parameters(), options);
  for (int step = 0; step < 20; ++step) {
    pair.both(step, [&](torch::nn::Sequential& model, const Callable& loss) {
      Optimiser& optimiser = model.ptr() == pair.plain.ptr() ? of_plain : of_twin;
      Tensors data = batch();
      auto evaluate = [&] {
        optimiser.zero_grad();
        at::Tensor value = loss(data)[0];
        value.backward();
        return value;
      };
      if (!closure) evaluate();
      optimiser.step(closure ? torch::optim::Optimizer::LossClosure(evaluate) : nullptr);
    });
    pair.expect_equal("after step " + std::to_string(step));
    if (testing::Test::HasFailure()) return;
  }
  pair.expect_compiled_once();
}

TEST(Optimisers, SgdWithMomentum) {
  expect_equal_training<torch::optim::SGD>(
      torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(0.01).nesterov(true), false);
}
TEST(Optimisers, AdamW) {
  expect_equal_training<torch::optim::AdamW>(torch::optim::AdamWOptions(0.01).amsgrad(true), false);
}
TEST(Optimisers, AdamWWithAClosure) {
  expect_equal_training<torch::optim::AdamW>(torch::optim::AdamWOptions(0.01), true);
}
TEST(Optimisers, LbfgsWithItsClosure) {
  expect_equal_training<torch::optim::LBFGS>(
      torch::optim::LBFGSOptions(0.1).max_iter(4).line_search_fn("strong_wolfe"), true);
}

TEST(Optimisers, StepsDoNotMakeTheFunctionBeTracedAgain) {
  Pair pair;
  torch::optim::AdamW optimiser(pair.twin->parameters(), torch::optim::AdamWOptions(0.01));
  uint64_t traces = test::counter("trace");
  for (int step = 0; step < 4; ++step) {
    optimiser.zero_grad();
    pair.fast(batch())[0].backward();
    optimiser.step();
  }
  EXPECT_EQ(test::counter("trace"), traces + 1);
}

/// Forward, backward and the step in one compiled function; what it leaves in parameters and gradients.
Tensors after_whole_steps(const std::function<Callable(Callable)>& compile, bool clears) {
  torch::manual_seed(0);
  torch::nn::Linear model(3, 2);
  auto step = compile([&](const Tensors& in) {
    if (clears) model->zero_grad();
    at::Tensor loss = model(in[0]).square().sum();
    loss.backward();
    at::NoGradGuard no_grad;
    for (at::Tensor& parameter : model->parameters()) parameter.sub_(parameter.grad(), 0.01);
    return Tensors{loss.detach()};
  });
  for (int i = 0; i < 10; ++i) step({torch::full({2, 3}, float(i + 1) / 10)});
  Tensors found = model->parameters();
  for (const at::Tensor& parameter : model->parameters()) found.push_back(parameter.grad());
  return found;
}

TEST(Optimisers, AWholeStepInOneFunction) {
  for (bool clears : {true, false}) {
    const Tensors eager = after_whole_steps([](Callable step) { return step; }, clears);
    for (bool watched : {true, false}) {
      const uint64_t uncompiled = test::counter("ran_uncompiled");
      const Tensors got = after_whole_steps(
          [&](Callable step) { return Callable(Compiled(step, {.watched_calls = watched})); }, clears);
      for (size_t i = 0; i < eager.size(); ++i)
        EXPECT_TRUE(same_values(eager[i], got[i])) << clears << ' ' << i;
      EXPECT_EQ(test::counter("ran_uncompiled"), uncompiled) << clears;
    }
  }
}

// ---- writes that come too early

/// Whether the backward refuses, with eager's meaning.
bool refused(const at::Tensor& y) {
  std::string error = message([&] { y.sum().backward({}, /*retain_graph=*/true); });
  EXPECT_TRUE(error.empty() || contains(error, "modified by an inplace operation")) << error;
  return !error.empty();
}

TEST(WrittenTooEarly, ByAnOptimiserStep) {
  Pair pair;
  pair.both(1, [&](torch::nn::Sequential& model, const Callable& loss) {
    loss(batch())[0].backward();
    at::Tensor y = loss(batch())[0];
    for (at::Tensor& p : model->parameters()) {
      torch::NoGradGuard no_grad;
      p.sub_(p.grad(), 0.1);
    }
    EXPECT_TRUE(refused(y));
  });
}

TEST(WrittenTooEarly, ByAnOptimiserOfLibtorchWhichWritesThroughData) {
  Pair pair;
  pair.both(1, [&](torch::nn::Sequential& model, const Callable& loss) {
    torch::optim::SGD optimiser(model->parameters(), torch::optim::SGDOptions(0.1));
    loss(batch())[0].backward();
    at::Tensor y = loss(batch())[0];
    optimiser.step();
    EXPECT_FALSE(refused(y));
  });
  pair.expect_equal("after a backward on parameters that were written");
}

TEST(WrittenTooEarly, AStepWhereTheBackwardReadsNoParameterIsFine) {
  at::Tensor weight = leaf({3}), x = torch::randn({3});
  Compiled fast([&](const Tensors& in) { return Tensors{in[0] * weight}; }, {});
  at::Tensor y = fast({x})[0];
  {
    torch::NoGradGuard no_grad;
    weight.sub_(1);
  }
  EXPECT_FALSE(refused(y));
  EXPECT_TRUE(same_values(weight.grad(), x));
}

struct Early {
  const char* name;
  Callable fn;
  std::function<void(const Tensors& in, const Tensors& out)> write;
  bool refused;
};

TEST(WrittenTooEarly, InputsAndOutputsThroughViewsOfThem) {
  const std::vector<Early> cases = {
      {"a part of an input that is saved", [](const Tensors& in) { return Tensors{in[0] * in[1]}; },
       [](const Tensors& in, const Tensors&) { in[1].detach().slice(0, 0, 1).zero_(); }, true},
      {"an input that is not read", [](const Tensors& in) { return Tensors{in[0] * 2 + in[1]}; },
       [](const Tensors& in, const Tensors&) { in[0].detach().zero_(); }, false},
      {"a saved output through its view", [](const Tensors& in) { return Tensors{in[0].tanh()}; },
       [](const Tensors&, const Tensors& out) { out[0].detach().view({3, 1}).zero_(); }, true},
      {"a saved output behind a view", [](const Tensors& in) { return Tensors{in[0].tanh().view({3, 1})}; },
       [](const Tensors&, const Tensors& out) { out[0].detach().zero_(); }, true},
      {"one of two outputs of one memory",
       [](const Tensors& in) {
         at::Tensor y = in[0].exp();
         return Tensors{y, y.detach().view({3, 1})};
       },
       [](const Tensors&, const Tensors& out) { out[1].zero_(); }, true},
      {"an output that nothing reads",
       [](const Tensors& in) { return Tensors{in[0].sin(), in[0].cos().detach()}; },
       [](const Tensors&, const Tensors& out) { out[1].zero_(); }, false},
      {"with an operator on a list", [](const Tensors& in) { return Tensors{in[0] * in[1]}; },
       [](const Tensors& in, const Tensors&) {
         torch::NoGradGuard no_grad;
         at::_foreach_add_({in[0].detach(), in[1].detach()}, 1);
       },
       true},
      {"through data(), which libtorch does not count",
       [](const Tensors& in) { return Tensors{in[0] * in[1]}; },
       [](const Tensors& in, const Tensors&) { in[1].data().zero_(); }, false},
  };
  for (const Early& c : cases)
    for (bool compiled : {false, true}) {
      SCOPED_TRACE(std::string(c.name) + (compiled ? ", compiled" : ", eager"));
      Compiled fast(c.fn, {});
      Tensors in = {leaf({3}) + 0, leaf({3}) + 0}, out = compiled ? fast(in) : c.fn(in);
      c.write(in, out);
      EXPECT_EQ(refused(out[0]), c.refused);
    }
}

TEST(WrittenTooEarly, ABackwardThatDoesNotReadItIsFine) {
  const Callable fn = [](const Tensors& in) { return Tensors{in[0] * in[1], in[0].sin()}; };
  Compiled fast(fn, {});
  for (const Callable& f : {fn, Callable([&](const Tensors& in) { return fast(in); })}) {
    Tensors in = {leaf({3}) + 0, leaf({3}) + 0}, out = f(in);
    in[1].detach().zero_();
    EXPECT_FALSE(refused(out[1]));
    EXPECT_TRUE(refused(out[0]));
  }
}

TEST(WrittenTooEarly, AFunctionThatWritesWhatItSaved) {
  const Callable fn = [](const Tensors& in) {
    at::Tensor y = in[0] * in[1] + 1;
    torch::NoGradGuard no_grad;
    in[1].add_(0.5);
    return Tensors{y};
  };
  for (bool keep : {true, false}) {
    Compiled fast(fn, {.keep_input_mutations = keep});
    auto run = [](const Callable& f) {
      at::Tensor a = leaf({3}), state = torch::ones(3);
      at::Tensor first = f({a, state})[0];
      return refused(first);
    };
    EXPECT_TRUE(run(fn));
    EXPECT_TRUE(run([&](const Tensors& in) { return fast(in); })) << keep;
  }
}

}  // namespace
}  // namespace tandem
