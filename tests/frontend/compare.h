/// Comparing what a compiled program gives with what the original gives.
#pragma once

#include "support/compare.h"

namespace tandem::test {

/// The gradients of the sum of `loss` with respect to `leaves`.
inline Tensors gradients(const at::Tensor& loss, const Tensors& leaves) {
  return torch::autograd::grad({loss.sum()}, leaves);
}

}  // namespace tandem::test
