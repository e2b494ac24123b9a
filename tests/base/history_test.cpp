// The autograd graph behind tensors: whose code runs with its nodes.
#include "base/history.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/torch.h>

namespace tandem {
namespace {

struct Nothing final : torch::autograd::PostAccumulateGradHook {
  void operator()(const torch::autograd::Variable&) override {}
};

at::Tensor leaf() { return torch::ones(2).requires_grad_(); }

TEST(History, HooksOfEverySortAreSeen) {
  at::Tensor x = leaf(), plain = x * 2, hooked = x * 2;
  hooked.register_hook([](const at::Tensor& gradient) { return gradient; });
  EXPECT_FALSE(has_hooks(*plain.grad_fn()));
  EXPECT_TRUE(has_hooks(*hooked.grad_fn()));
  EXPECT_TRUE(runs_own_code(*hooked.grad_fn()));
}

TEST(History, AHookOnAGatheredGradientIsTheUsersCode) {
  at::Tensor x = leaf(), y = leaf();
  const auto plain = torch::autograd::impl::grad_accumulator(y),
             hooked = torch::autograd::impl::grad_accumulator(x);
  torch::autograd::impl::set_post_acc_grad_hooks(x, std::make_unique<Nothing>());
  EXPECT_FALSE(has_hooks(*plain));
  EXPECT_FALSE(runs_own_code(*plain));
  EXPECT_TRUE(has_hooks(*hooked));
  EXPECT_TRUE(runs_own_code(*hooked));
}

}  // namespace
}  // namespace tandem
