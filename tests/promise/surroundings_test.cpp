// Surroundings that can be seen are seen at the very next call: gradients, generators, members and options of
// libtorch's own modules.
#include "runtime/compare.h"

#include <ATen/CPUGeneratorImpl.h>

#include <thread>

namespace tandem {
namespace {

using test::contains;
using test::counter;
using test::leaf;
using test::same_values;

namespace nn = torch::nn;

/// A training loop whose step clears the gradients itself, before or after the forward.
void expect_cleared(bool before_forward, bool watches) {
  auto run = [&](bool compiled) {
    torch::manual_seed(0);
    nn::Linear model(3, 1);
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    auto step = [&](at::Tensor x) {
      if (before_forward) optimizer.zero_grad();
      at::Tensor loss = model(x).pow(2).sum();
      if (!before_forward) optimizer.zero_grad();
      return loss;
    };
    auto fast = compile(step, watches ? Options{.watched_calls = false, .watch = {model.ptr()}}
                                      : Options{.watched_calls = false});
    Tensors gradients;
    for (int i = 0; i < 5; ++i) {
      (compiled ? fast(torch::ones({2, 3})) : step(torch::ones({2, 3}))).backward();
      gradients.push_back(model->weight.grad().clone());
    }
    return gradients;
  };
  const Tensors eager = run(false), got = run(true);
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(same_values(eager[i], got[i])) << i;
}

TEST(Surroundings, GradientsThatTheStepClears) {
  for (bool before : {true, false})
    for (bool watches : {true, false}) expect_cleared(before, watches);
}

TEST(Surroundings, AProgramMayAskWhetherThereIsAGradient) {
  at::Tensor w = leaf({2});
  auto fn = [&](at::Tensor x) { return x * w * (w.grad().defined() ? 2 : 1); };
  auto fast = compile(fn, {.watched_calls = false});
  for (int call = 0; call < 4; ++call) {
    at::Tensor got = fast(torch::ones(2));
    EXPECT_TRUE(same_values(got, fn(torch::ones(2))));
    got.sum().backward();
    if (call == 2) w.mutable_grad() = at::Tensor();
  }
}

TEST(Surroundings, AGradientIsFoundWhereItGathers) {
  nn::Linear model(3, 2), twin(3, 2);
  {
    torch::NoGradGuard no_grad;
    for (size_t i = 0; i < 2; ++i) twin->parameters()[i].copy_(model->parameters()[i]);
  }
  auto update_of = [](nn::Linear& net) {
    return [&net] {
      torch::NoGradGuard no_grad;
      for (auto& p : net->parameters()) p.sub_(p.grad() * 0.1);
    };
  };
  auto fast = compile(update_of(twin), {.watched_calls = false});
  const uint64_t before = counter("trace");
  for (int i = 0; i < 20; ++i) {
    for (nn::Linear* net : {&model, &twin}) {
      (*net)->zero_grad();
      (*net)(torch::ones({2, 3}) * i).pow(2).mean().backward();
    }
    update_of(model)();
    fast();
    EXPECT_TRUE(same_values(model->weight, twin->weight));
  }
  EXPECT_EQ(counter("trace") - before, 1u);
}

template <class Fn>
void expect_same_numbers(const Fn& fn) {
  auto run = [&](const auto& f) {
    torch::manual_seed(11);
    Tensors results;
    for (int call = 0; call < 4; ++call) results.push_back(f(torch::ones(3)));
    results.push_back(torch::rand(3));
    return results;
  };
  const Tensors eager = run(fn), got = run(compile(fn, {.watched_calls = false}));
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(same_values(eager[i], got[i])) << i;
}

TEST(Surroundings, AGeneratorThatIsSeeded) {
  expect_same_numbers([](at::Tensor x) {
    torch::manual_seed(3);
    return x * torch::randn(3);
  });
  expect_same_numbers([](at::Tensor x) {
    at::Tensor y = x * torch::randn(3);
    torch::manual_seed(3);
    return y;
  });
}

TEST(Surroundings, AGeneratorThatIsSeededWithItsOwnSeed) {
  expect_same_numbers([](at::Tensor x) {
    torch::manual_seed(11);
    return x * torch::randn(3);
  });
}

TEST(Surroundings, ABlockThatPutsTheStateBack) {
  expect_same_numbers([](at::Tensor x) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    at::Tensor state = generator.get_state();
    torch::manual_seed(5);
    at::Tensor y = x * torch::rand(3);
    generator.set_state(state);
    return y + torch::rand(3);
  });
}

TEST(Surroundings, NumbersThatAreDrawnAgain) {
  expect_same_numbers([](at::Tensor x) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    at::Tensor state = generator.get_state(), y = x * torch::rand(3);
    generator.set_state(state);
    return y - torch::rand(3);
  });
}

TEST(Surroundings, SeedsAreWhatTheyWereBehindATrace) {
  torch::manual_seed(21);
  compile([](at::Tensor x) { return x * torch::rand(2); })(torch::ones(2));
  EXPECT_EQ(at::detail::getDefaultCPUGenerator().current_seed(), 21u);
}

TEST(Surroundings, DrawsOfOtherThreadsAreNeitherSeedingNorRewound) {
  torch::manual_seed(2);
  const at::Tensor first = torch::rand(3), second = torch::rand(3);
  torch::manual_seed(2);
  at::Tensor drawn;
  auto fast = compile(
      [&](at::Tensor x) {
        if (!drawn.defined()) std::thread([&] { drawn = torch::rand(3); }).join();
        return torch::dropout(x, 0.0, true);
      },
      {.watched_calls = false});
  EXPECT_EQ(fast.explain(torch::ones(3)).eager_reason, "");
  EXPECT_TRUE(same_values(drawn, first));
  EXPECT_TRUE(same_values(torch::rand(3), second));
}

/// Calls a compiled module and its plain twin after each change; both are the same object.
template <class Module, class Change>
void expect_seen(Module module, const at::Tensor& x, const Change& change) {
  auto fast = compile(module, {.watched_calls = false});
  for (int round = 0; round < 3; ++round) {
    change(module, round);
    torch::manual_seed(1);
    at::Tensor want = module->forward(x);
    torch::manual_seed(1);
    EXPECT_TRUE(same_values(fast(x), want)) << round;
  }
}

TEST(Surroundings, MembersOfModulesThatAreReplaced) {
  expect_seen(nn::Linear(2, 2), torch::ones({1, 2}), [](nn::Linear& m, int round) {
    if (round) m->weight = torch::full({2, 2}, float(round)).requires_grad_();
  });
  expect_seen(nn::Embedding(3, 2), torch::tensor({0L, 2L}), [](nn::Embedding& m, int round) {
    if (round) m->weight = torch::full({3, 2}, float(round)).requires_grad_();
  });
}

TEST(Surroundings, OptionsOfModules) {
  expect_seen(nn::Dropout(0.1), torch::ones(50),
              [](nn::Dropout& m, int round) { m->options.p(0.2 * round); });
  expect_seen(nn::LayerNorm(nn::LayerNormOptions({3})), torch::arange(3.f),
              [](nn::LayerNorm& m, int round) { m->options.eps(round + 1e-5); });
  expect_seen(nn::LeakyReLU(), -torch::ones(3),
              [](nn::LeakyReLU& m, int round) { m->options.negative_slope(round); });
  expect_seen(nn::BatchNorm1d(2), torch::arange(8.f).view({4, 2}), [](nn::BatchNorm1d& m, int round) {
    m->eval();
    m->options.eps(round + 0.5);
  });
}

TEST(Surroundings, MomentumOfANorm) {
  nn::BatchNorm1d plain(2), twin(2);
  auto fast = compile(twin, {.watched_calls = false});
  for (double momentum : {0.1, 0.5, 1.0}) {
    plain->options.momentum(momentum);
    twin->options.momentum(momentum);
    at::Tensor x = torch::arange(8.f).view({4, 2}) * momentum;
    EXPECT_TRUE(same_values(fast(x), plain(x)));
    EXPECT_TRUE(same_values(twin->running_mean, plain->running_mean));
  }
}

}  // namespace
}  // namespace tandem
