// What rows about other things than the cache say of it: what is found again behaves as what was compiled.
#include <ATen/core/grad_mode.h>

#include "cache/processes.h"
#include "frontend/pairs.h"
#include "support/autocast.h"

namespace tandem::test {
namespace {

using SemanticRows = Processes;

TEST_F(SemanticRows, A15_AGradientTakenInsideIsTheSameEveryTime) {
  auto slope = [](const at::Tensor& of, const at::Tensor& x) {
    return torch::autograd::grad({of.sum()}, {x})[0];
  };
  const Callable functions[] = {
      [=](const Tensors& in) { return Tensors{in[0].exp(), slope(in[0].exp(), in[0])}; },
      [=](const Tensors& in) { return Tensors{slope(in[0], in[0])}; }};
  const Tensors inputs{leaf({1, 2})};
  for (const Callable& fn : functions)
    for (int process = 0; process < 2; ++process) {
      next_process();
      expect_same(train(Compiled(fn, options()), inputs), train(fn, inputs));
      EXPECT_EQ(counter("cache_miss"), process == 0);
      EXPECT_EQ(counter("cache_hit"), process > 0);
    }
}

TEST_F(SemanticRows, B16_ADetachedInputSharesMemoryFromTheCacheToo) {
  const Callable fn = [](const Tensors& in) {
    at::Tensor before = in[0].detach();
    in[0].mul_(2);
    return Tensors{in[0], before};
  };
  for (bool requires_grad : {false, true})
    for (int process = 0; process < 3; ++process) {
      next_process();
      const at::Tensor x = leaf({1, 2}), a = requires_grad ? x * 1 : x.detach() * 1;
      const Tensors out = Compiled(fn, options())({a});
      EXPECT_TRUE(out[0].is_same(a));
      EXPECT_TRUE(out[1].is_alias_of(a) && torch::equal(out[1], torch::tensor({2.f, 4.f})) &&
                  !out[1].requires_grad());
      EXPECT_EQ(out[0].requires_grad(), requires_grad);
      if (requires_grad) {
        EXPECT_TRUE(torch::equal(torch::autograd::grad({out[0].sum()}, {x})[0], torch::tensor({2.f, 2.f})));
      }
      EXPECT_EQ(counter("cache_miss"), process == 0);
      EXPECT_EQ(counter("cache_hit"), process > 0);
      EXPECT_EQ(counter("cache_bypass"), 0u);
    }
}

/// What the function gives and its gradients, with this seed.
Tensors with_seed(const Callable& fn, const Tensors& inputs, uint64_t seed) {
  torch::manual_seed(seed);
  return train(fn, inputs);
}

TEST_F(SemanticRows, I8_TheLiveGeneratorDrivesCodeFromTheCache) {
  const Callable functions[] = {
      [](const Tensors& in) { return Tensors{torch::dropout(in[0].sin(), 0.5, true)}; },
      [](const Tensors& in) {
        return Tensors{at::scaled_dot_product_attention(in[0], in[0].sin(), in[0], {}, /*dropout_p=*/0.5)};
      }};
  const Tensors inputs{torch::rand({1, 2, 8, 4}).requires_grad_()};
  for (const Callable& fn : functions) {
    next_process();
    with_seed(Compiled(fn, options()), inputs, 1);
    EXPECT_COUNTERS(0u, 1u, 1u);
    next_process();
    const Compiled loaded(fn, strict());
    for (uint64_t seed : {1, 2, 1}) expect_same(with_seed(loaded, inputs, seed), with_seed(fn, inputs, seed));
    EXPECT_FALSE(torch::equal(with_seed(loaded, inputs, 1)[0], with_seed(loaded, inputs, 2)[0]));
    EXPECT_COUNTERS(1u, 0u, 0u);
    expect_only_traced();
  }
}

TEST_F(SemanticRows, J6_EveryDtypeOfAutocastIsFoundAgain) {
  torch::nn::Sequential model(torch::nn::Linear(4, 4), torch::nn::ReLU(), torch::nn::Linear(4, 2));
  const Callable fn = [&](const Tensors& in) { return Tensors{model->forward(in[0])}; };
  const Tensors inputs{torch::rand({3, 4}).requires_grad_()};
  std::vector<std::string> states;
  for (auto dtype : {at::kBFloat16, at::kHalf, at::kBFloat16, at::kHalf}) {
    next_process();
    Autocast autocast(dtype);
    const Tensors got = train(Compiled(fn, options()), inputs);
    expect_same(got, train(fn, inputs));
    EXPECT_EQ(got[0].scalar_type(), dtype);
    states.push_back(counter("cache_hit") ? "hit" : counter("cache_miss") ? "miss" : "neither");
  }
  EXPECT_EQ(states, (std::vector<std::string>{"miss", "miss", "hit", "hit"}));
}

/// A wrapper that says which size and strides the tensors in it have.
struct Sized {
  Pair inner;
  std::vector<int64_t> sizes, strides;
};

TEST_F(SemanticRows, K11_WrappersAreRebuiltAroundWhatComesFromTheCache) {
  auto fn = [](const Sized& in) {
    const Pair out{in.inner.a.sin() * 2, in.inner.b.exp()};
    return Sized{out, out.a.sizes().vec(), out.a.strides().vec()};
  };
  auto tensor = [](bool transposed) { return transposed ? torch::rand({6, 4}).t() : torch::rand({4, 6}); };
  for (bool transposed : {false, true})
    for (int process = 0; process < 2; ++process) {
      next_process();
      const Pair pair{tensor(transposed).requires_grad_(), tensor(transposed).requires_grad_()};
      const Sized in{pair, pair.a.sizes().vec(), pair.a.strides().vec()}, got = compile(fn, options())(in),
                                                                          want = fn(in);
      EXPECT_EQ(got.sizes, (std::vector<int64_t>{4, 6}));
      EXPECT_EQ(got.strides, transposed ? (std::vector<int64_t>{1, 4}) : (std::vector<int64_t>{6, 1}));
      EXPECT_EQ(got.inner.a.strides(), pair.a.strides());
      auto gradients = [&](const Sized& of) {
        return torch::autograd::grad({of.inner.a.sum(), of.inner.b.sum()}, {pair.a, pair.b});
      };
      expect_same({got.inner.a, got.inner.b}, {want.inner.a, want.inner.b});
      expect_same(gradients(got), gradients(want));
      // The outputs have nothing in common, so each has a backward of its own, which joins the entry.
      EXPECT_COUNTERS(process > 0, process == 0, process == 0 ? 2u : 0u);
    }
}

}  // namespace
}  // namespace tandem::test
