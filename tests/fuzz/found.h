/// What tests of programs that random search found have in common: they are compared as the search compares.
#pragma once

#include "fuzz/compare.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace tandem::found {

using fuzz::Scene;

inline at::Tensor numbers(at::IntArrayRef sizes) { return torch::randn(sizes, at::kDouble); }
inline Scene one_leaf(at::IntArrayRef sizes) {
  at::Tensor leaf = numbers(sizes).requires_grad_();
  return {{leaf}, {leaf}};
}

inline fuzz::Outcome expect_alike(const fuzz::Subject& subject, const fuzz::Setup& setup = {}) {
  fuzz::Outcome outcome = fuzz::compare(subject, setup);
  if (outcome.mismatch)
    ADD_FAILURE() << outcome.mismatch->kind << ", " << outcome.mismatch->setup << "\n"
                  << outcome.mismatch->detail << "\nseed " << subject.data;
  return outcome;
}

/// The first `passed` given tensors are arguments, and the others are captured. Several seeds, since
/// gradients of a random choice of outputs are compared.
inline void expect_same_calls(const std::function<Scene()>& given, size_t passed,
                              const std::function<Tensors(Tensors)>& run, bool keeps_state) {
  std::vector<size_t> arguments;
  for (size_t i = 0; i < passed; ++i) arguments.push_back(i);
  for (uint64_t data = 1; data <= 8; ++data) {
    auto scene = [&](uint64_t seed, const Scene* before) {
      torch::manual_seed(seed);
      Scene made = given();
      if (before)
        for (size_t i = passed; i < made.pool.size(); ++i) made.pool[i] = before->pool[i];
      if (before && passed == 0) made.leaves = before->leaves;
      return made;
    };
    fuzz::Subject subject{scene, arguments, run, data, /*higher_orders=*/true};
    subject.keeps_state = keeps_state;
    expect_alike(subject);
  }
}

}  // namespace tandem::found
