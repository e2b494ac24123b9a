/// The step of the model `chain`, written by hand in AVX2 intrinsics with SLEEF's functions: what a compiler
/// is measured against.
#pragma once

#include <ATen/core/Tensor.h>

namespace tandem::bench {

/// Whether this processor has the instructions.
bool can_run_by_hand();

/// The loss, and the gradient of the weight; contiguous float tensors, a row a multiple of 8 elements long.
struct ChainStep {
  at::Tensor loss, gradient;
};
ChainStep chain_by_hand(const at::Tensor& x, const at::Tensor& weight);

}  // namespace tandem::bench
