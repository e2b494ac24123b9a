/// Programs with a say in what is kept for their backwards, beside the same without.
#pragma once

#include "runtime/checkpoint.h"
#include "support/compare.h"

namespace tandem::test {

using TensorFn = std::function<at::Tensor(const at::Tensor&)>;

/// Two layers with dropout between them.
struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(int64_t width = 8)
      : up(register_module("up", torch::nn::Linear(width, 4 * width))),
        down(register_module("down", torch::nn::Linear(4 * width, width))) {}
  at::Tensor forward(const at::Tensor& x) {
    return down(torch::dropout(torch::gelu(up(x)), 0.3, is_training()));
  }
  torch::nn::Linear up, down;
};
TORCH_MODULE(Block);

/// What a call gives, what its gradients are of first and, where asked for, second order, and where the
/// generator is behind each.
inline Tensors results_of(const TensorFn& run, const at::Tensor& x, Tensors leaves, bool twice) {
  torch::manual_seed(5);
  leaves.insert(leaves.begin(), x);
  const at::Tensor y = run(x);
  Tensors found{y.detach(), state()};
  torch::rand({2});  // the caller draws too before he asks for gradients
  const Tensors first = torch::autograd::grad({y.sin().sum()}, leaves, {}, twice, twice, true);
  found.insert(found.end(), first.begin(), first.end());
  found.push_back(state());
  if (!twice) return found;
  at::Tensor sum = torch::zeros({});
  for (const at::Tensor& gradient : first)
    if (gradient.defined() && gradient.requires_grad()) sum = sum + gradient.square().sum();
  for (const at::Tensor& gradient : torch::autograd::grad({sum}, leaves, {}, false, false, true))
    found.push_back(gradient);
  return found;
}

inline void expect_same_results(const TensorFn& got, const TensorFn& want, const at::Tensor& x,
                                const Tensors& leaves = {}, bool twice = true) {
  const Tensors a = results_of(got, x, leaves, twice), b = results_of(want, x, leaves, twice);
  for (size_t i = 0; i < b.size(); ++i) EXPECT_TRUE(same_values(a[i], b[i])) << "result " << i;
}

}  // namespace tandem::test
