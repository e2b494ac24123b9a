/// Comparing what a compiled program gives with what the original gives.
#pragma once

#include <gtest/gtest.h>
#include <tandem/tandem.h>
#include <torch/torch.h>

namespace tandem::test {

inline bool same(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.sizes() == b.sizes() && a.dtype() == b.dtype() && a.requires_grad() == b.requires_grad() && at::equal(a.detach(), b.detach());
}

inline uint64_t counter(const std::string& name) {
  auto all = counters();
  auto found = all.find(name);
  return found == all.end() ? 0 : found->second;
}

/// The gradients of the sum of `loss` with respect to `leaves`.
inline Tensors gradients(const at::Tensor& loss, const Tensors& leaves) { return torch::autograd::grad({loss.sum()}, leaves); }

inline void expect_same(const Tensors& a, const Tensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same(a[i], b[i])) << "tensor " << i;
}

/// The sentence that `call` throws as E; empty when it throws nothing.
template <class E, class Call>
std::string message(const Call& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

}  // namespace tandem::test
