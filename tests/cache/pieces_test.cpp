// Functions whose calls have several nodes: what the cache gives back is differentiated as what was compiled.
#include "cache/scratch_folder.h"
#include "support/compare.h"

namespace tandem {
namespace {

using test::same_values;

Tensors logits_and_loss(const Tensors& in) {
  at::Tensor logits = in[0].mm(in[1]).tanh();
  return {logits, (logits.square() * in[1]).mean()};
}

/// The loss with respect to inputs and logits, once and twice, and the logits with respect to the inputs.
Tensors gradients(const Callable& f) {
  torch::manual_seed(0);
  at::Tensor a = torch::randn({3, 3}).requires_grad_(), b = torch::randn({3, 3}).requires_grad_();
  const Tensors out = f({a, b});
  Tensors found = torch::autograd::grad({out[1]}, {a, b, out[0]}, {}, /*retain_graph=*/true);
  Tensors twice =
      torch::autograd::grad({out[1]}, {a, out[0]}, {}, /*retain_graph=*/true, /*create_graph=*/true);
  for (const at::Tensor& once : twice) found.push_back(once.detach());
  for (const at::Tensor& second :
       torch::autograd::grad({twice[0].square().sum() + twice[1].sin().sum()}, {a, b, out[0]}, {}, true))
    found.push_back(second);
  for (const at::Tensor& of_logits : torch::autograd::grad({out[0].exp().sum()}, {a, b}))
    found.push_back(of_logits);
  return found;
}

TEST(Pieces, AreFoundAgain) {
  ScratchFolder folder;
  Options options{.must_compile = true};
  options.cache.directory = folder.path();
  std::vector<Tensors> found;
  for (int run = 0; run < 2; ++run) {
    reset();
    const Compiled fast(Callable(logits_and_loss), options);
    const uint64_t hits = test::counter("cache_hit"),
                   compiled = test::counter("compile_backward") + test::counter("compile_higher_order");
    found.push_back(gradients([&](const Tensors& in) { return fast(in); }));
    EXPECT_EQ(test::counter("cache_hit") - hits, run);
    if (run == 1) {
      EXPECT_EQ(test::counter("compile_backward") + test::counter("compile_higher_order"), compiled);
    }
  }
  ASSERT_EQ(found[1].size(), found[0].size());
  for (size_t i = 0; i < found[0].size(); ++i) EXPECT_TRUE(same_values(found[1][i], found[0][i])) << i;
}

}  // namespace
}  // namespace tandem
