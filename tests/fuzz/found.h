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

}  // namespace tandem::found
