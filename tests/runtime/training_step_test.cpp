// A whole training step in one function: forward, gradients, and the optimiser's arithmetic written into
// parameters and state.
#include "runtime/compare.h"

#include "models.h"

namespace tandem {
namespace {

using test::counter;
using test::leaf;
using test::same_values;

constexpr int steps = 50;
constexpr double rate = 0.01, decay = 0.1, beta1 = 0.9, beta2 = 0.99, tiny = 1e-8, momentum = 0.9;

/// What an optimiser keeps beside the parameters.
struct State {
  Tensors first, second, counts;

  explicit State(const Tensors& parameters) {
    for (const at::Tensor& p : parameters) {
      first.push_back(torch::zeros_like(p).detach());
      second.push_back(torch::zeros_like(p).detach());
      counts.push_back(torch::zeros({}));
    }
  }
};
using Update = std::function<void(const Tensors& parameters, const Tensors& gradients, const State& state)>;

// ---- optimisers, written in place under no_grad

void sgd(const Tensors& parameters, const Tensors& gradients, const State& state) {
  for (size_t i = 0; i < parameters.size(); ++i)
    parameters[i].sub_(state.first[i].mul_(momentum).add_(gradients[i]), rate);
}

void adamw(const Tensors& parameters, const Tensors& gradients, const State& state) {
  at::Tensor count = state.counts[0].add_(1);
  at::Tensor size = rate / (1 - torch::pow(beta1, count)), scale = (1 - torch::pow(beta2, count)).sqrt();
  for (size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].mul_(1 - rate * decay);
    state.first[i].lerp_(gradients[i], 1 - beta1);
    state.second[i].mul_(beta2).addcmul_(gradients[i], gradients[i], 1 - beta2);
    parameters[i].sub_(size * state.first[i] / (state.second[i].sqrt() / scale + tiny));
  }
}

void sgd_on_lists(const Tensors& parameters, const Tensors& gradients, const State& state) {
  at::_foreach_mul_(state.first, momentum);
  at::_foreach_add_(state.first, gradients);
  at::_foreach_add_(parameters, state.first, -rate);
}

void adamw_on_lists(const Tensors& parameters, const Tensors& gradients, const State& state) {
  at::_foreach_add_(state.counts, 1);
  at::_foreach_mul_(parameters, 1 - rate * decay);
  at::_foreach_lerp_(state.first, gradients, 1 - beta1);
  at::_foreach_mul_(state.second, beta2);
  at::_foreach_addcmul_(state.second, gradients, gradients, 1 - beta2);
  Tensors divisor = at::_foreach_sqrt(state.second);
  at::_foreach_add_(divisor, tiny);
  at::_foreach_addcdiv_(parameters, state.first, divisor, -rate);
}

void fused_adamw(const Tensors& parameters, const Tensors& gradients, const State& state) {
  at::_foreach_add_(state.counts, 1);
  at::_fused_adamw_(parameters, gradients, state.first, state.second, {}, state.counts, rate, beta1, beta2,
                    decay, tiny, /*amsgrad=*/false, /*maximize=*/false);
}

void fused_sgd(const Tensors& parameters, const Tensors& gradients, const State& state) {
  at::_fused_sgd_(parameters, gradients, state.first, 0, momentum, rate, 0, /*nesterov=*/false,
                  /*maximize=*/false, /*is_first_step=*/false);
}

const std::vector<std::pair<const char*, Update>> updates = {{"sgd", sgd},
                                                             {"adamw", adamw},
                                                             {"sgd on lists", sgd_on_lists},
                                                             {"adamw on lists", adamw_on_lists},
                                                             {"fused adamw", fused_adamw},
                                                             {"fused sgd", fused_sgd}};

// ---- models

/// A model, its optimiser's state and a step that trains it.
struct Trainer {
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const Tensors&)> loss;
  Update update;
  Tensors parameters;
  State state;

  Trainer(std::shared_ptr<torch::nn::Module> m, std::function<at::Tensor(const Tensors&)> l, Update u)
      : module(std::move(m)),
        loss(std::move(l)),
        update(std::move(u)),
        parameters(module->parameters()),
        state(parameters) {}

  Tensors step(const Tensors& data) {
    at::Tensor value = loss(data);
    Tensors gradients = torch::autograd::grad({value}, parameters);
    torch::NoGradGuard no_grad;
    update(parameters, gradients, state);
    return {value.detach()};
  }

  /// Everything that a step leaves behind.
  Tensors all() const {
    Tensors everything = parameters;
    for (const Tensors& more : {state.first, state.second, state.counts, module->buffers()})
      everything.insert(everything.end(), more.begin(), more.end());
    return everything;
  }
};
using MakeTrainer = std::function<std::unique_ptr<Trainer>(const Update&)>;

std::unique_ptr<Trainer> mlp(const Update& update) {
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Linear(4, 8), torch::nn::GELU(), torch::nn::Linear(8, 2));
  return std::make_unique<Trainer>(
      model.ptr(),
      [model](const Tensors& in) mutable { return torch::mse_loss(model->forward(in[0]), in[1]); }, update);
}

std::unique_ptr<Trainer> with_statistics(const Update& update) {
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Linear(4, 8), torch::nn::BatchNorm1d(8), torch::nn::ReLU(),
                              torch::nn::Dropout(0.3), torch::nn::Linear(8, 2));
  return std::make_unique<Trainer>(
      model.ptr(),
      [model](const Tensors& in) mutable { return torch::mse_loss(model->forward(in[0]), in[1]); }, update);
}

std::unique_ptr<Trainer> gpt(const Update& update) {
  bench::Benchmark small =
      bench::make_gpt({.layers = 2, .width = 16, .heads = 2, .vocabulary = 11, .context = 6, .dropout = 0.2},
                      2, c10::kCPU, 3);
  return std::make_unique<Trainer>(small.module, small.loss, update);
}

Tensors regression_data() { return {torch::randn({6, 4}), torch::randn({6, 2})}; }
Tensors gpt_data() {
  return bench::make_gpt({.layers = 1, .width = 8, .heads = 1, .vocabulary = 11, .context = 6}, 2, c10::kCPU,
                         3)
      .inputs;
}

/// Compiles since the last question.
class Compiles {
 public:
  void expect_one_inference_graph() const {
    EXPECT_EQ(counter("trace"), before_.at("trace") + 1);
    EXPECT_EQ(counter("compile_inference"), before_.at("compile_inference") + 1);
    EXPECT_EQ(counter("compile_forward"), before_.at("compile_forward"));
    EXPECT_EQ(counter("compile_backward"), before_.at("compile_backward"));
  }

 private:
  std::map<std::string, uint64_t> before_ = counters();
};

/// Steps both, the second one compiled, on equal data, and compares everything that each step leaves behind.
void expect_equal_steps(Trainer& eager, Trainer& twin, const Callable& fast,
                        const std::function<Tensors()>& data) {
  for (int step = 0; step < steps; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    torch::manual_seed(step);
    Tensors batch = data();
    torch::manual_seed(step);
    at::Tensor want = eager.step(batch)[0];
    torch::manual_seed(step);
    at::Tensor got = fast(batch)[0];
    ASSERT_TRUE(same_values(got, want)) << "loss";
    const Tensors wanted = eager.all(), all = twin.all();
    for (size_t i = 0; i < wanted.size(); ++i) ASSERT_TRUE(same_values(all[i], wanted[i])) << "tensor " << i;
  }
}

void expect_compiled_steps(const MakeTrainer& make, const Update& update,
                           const std::function<Tensors()>& data) {
  for (const char* backend : {"eager", "debug"})
    for (bool keep : {true, false}) {
      SCOPED_TRACE(std::string(backend) + (keep ? ", writes kept" : ", writes returned"));
      auto eager = make(update), twin = make(update);
      Compiles compiles;
      Compiled fast([&](const Tensors& in) { return twin->step(in); },
                    {.backend = backend, .keep_input_mutations = keep, .watch = {twin->module}});
      expect_equal_steps(*eager, *twin, [&](const Tensors& in) { return fast(in); }, data);
      compiles.expect_one_inference_graph();
      Explanation e = fast.explain(data());
      EXPECT_EQ(e.eager_reason, "");
      test::verify(e);
      EXPECT_TRUE(e.backward.empty());
      if (testing::Test::HasFailure()) return;
    }
}

TEST(TrainingStep, OfAnMlpWithEveryOptimiser) {
  for (const auto& [name, update] : updates) {
    SCOPED_TRACE(name);
    expect_compiled_steps(mlp, update, regression_data);
  }
}

TEST(TrainingStep, WithRunningStatisticsAndDropout) {
  for (const auto& [name, update] : updates) {
    SCOPED_TRACE(name);
    expect_compiled_steps(with_statistics, update, regression_data);
  }
}

TEST(TrainingStep, OfAGptWithDropout) {
  for (const auto& [name, update] : {updates[1], updates[3], updates[4]}) {
    SCOPED_TRACE(name);
    expect_compiled_steps(gpt, update, gpt_data);
  }
}

TEST(TrainingStep, KeepsItsWritesInTheGraph) {
  auto trainer = mlp(adamw);
  Compiled fast([&](const Tensors& in) { return trainer->step(in); }, {});
  Explanation e = fast.explain(regression_data());
  size_t written = 0;
  for (const Contract::Input& input : e.contract.inputs) {
    written += input.write == InputWrite::InGraph;
    EXPECT_NE(input.write, InputWrite::Returned) << input.name;
  }
  EXPECT_EQ(written, 3 * trainer->parameters.size() + 1);
  EXPECT_EQ(e.forward.outputs().size(), 1u);
}

/// A module whose method is the step.
struct SelfTrained : torch::nn::Module {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(4, 8)),
                    second = register_module("second", torch::nn::Linear(8, 2));
  at::Tensor count = register_buffer("count", torch::zeros({}));

  Tensors step(const Tensors& in) {
    at::Tensor loss = torch::mse_loss(second(first(in[0]).tanh()), in[1]);
    Tensors gradients = torch::autograd::grad({loss}, parameters());
    torch::NoGradGuard no_grad;
    count.add_(1);
    for (size_t i = 0; i < gradients.size(); ++i) parameters()[i].sub_(gradients[i] / count);
    return {loss.detach()};
  }
};

TEST(TrainingStep, AsAMethodOfAModule) {
  torch::manual_seed(1);
  SelfTrained eager;
  torch::manual_seed(1);
  auto twin = std::make_shared<SelfTrained>();
  Compiles compiles;
  Compiled fast([&](const Tensors& in) { return twin->step(in); }, {.watch = {twin}});
  for (int step = 0; step < steps; ++step) {
    Tensors data = regression_data();
    ASSERT_TRUE(same_values(fast(data)[0], eager.step(data)[0])) << step;
    for (size_t i = 0; i < eager.parameters().size(); ++i)
      ASSERT_TRUE(same_values(twin->parameters()[i], eager.parameters()[i])) << step;
  }
  EXPECT_TRUE(same_values(twin->count, torch::full({}, float(steps))));
  compiles.expect_one_inference_graph();
}

/// Data, parameters and state are all arguments.
Tensors step_on_arguments(const Tensors& in) {
  const Tensors parameters(in.begin() + 2, in.begin() + 6), first(in.begin() + 6, in.begin() + 10),
      second(in.begin() + 10, in.begin() + 14);
  at::Tensor loss = torch::mse_loss(
      torch::linear(torch::linear(in[0], parameters[0], parameters[1]).tanh(), parameters[2], parameters[3]),
      in[1]);
  Tensors gradients = torch::autograd::grad({loss}, parameters);
  torch::NoGradGuard no_grad;
  State state({});
  state.first = first;
  state.second = second;
  state.counts = {in[14]};
  adamw(parameters, gradients, state);
  return {loss.detach()};
}

TEST(TrainingStep, OnParametersThatArePassed) {
  for (bool keep : {true, false}) {
    auto arguments = [] {
      torch::manual_seed(4);
      Tensors all = {leaf({8, 4}), leaf({8}), leaf({2, 8}), leaf({2})};
      State state(all);
      for (const Tensors& more : {state.first, state.second}) all.insert(all.end(), more.begin(), more.end());
      all.push_back(torch::zeros({}));
      return all;
    };
    Tensors eager = arguments(), twin = arguments();
    Compiles compiles;
    Compiled fast(step_on_arguments, {.keep_input_mutations = keep});
    auto with = [](Tensors data, const Tensors& rest) {
      data.insert(data.end(), rest.begin(), rest.end());
      return data;
    };
    for (int step = 0; step < steps; ++step) {
      Tensors data = regression_data();
      ASSERT_TRUE(same_values(fast(with(data, twin))[0], step_on_arguments(with(data, eager))[0])) << step;
      for (size_t i = 0; i < eager.size(); ++i) {
        ASSERT_TRUE(test::same_tensor(twin[i], eager[i])) << step << " " << i;
        ASSERT_EQ(twin[i]._version() > 0, eager[i]._version() > 0);
      }
    }
    compiles.expect_one_inference_graph();
  }
}

/// The loss itself is returned; its graph has been used up inside.
TEST(TrainingStep, ThatReturnsItsLossUndetached) {
  auto eager = mlp(adamw), twin = mlp(adamw);
  auto step = [](Trainer& trainer, const Tensors& data) {
    at::Tensor value = trainer.loss(data);
    Tensors gradients = torch::autograd::grad({value}, trainer.parameters);
    torch::NoGradGuard no_grad;
    trainer.update(trainer.parameters, gradients, trainer.state);
    return Tensors{value};
  };
  Compiles compiles;
  Compiled fast([&](const Tensors& in) { return step(*twin, in); }, {});
  for (int i = 0; i < steps; ++i) {
    Tensors data = regression_data();
    at::Tensor want = step(*eager, data)[0], got = fast(data)[0];
    ASSERT_TRUE(test::same_tensor(got, want));
    for (const at::Tensor& loss : {want, got})
      EXPECT_TRUE(test::contains(test::message([&] { loss.backward(); }), "second time"));
    for (size_t p = 0; p < eager->parameters.size(); ++p)
      ASSERT_TRUE(same_values(twin->parameters[p], eager->parameters[p]));
  }
  compiles.expect_one_inference_graph();
  EXPECT_EQ(fast.explain(regression_data()).eager_reason, "");
}

}  // namespace
}  // namespace tandem
