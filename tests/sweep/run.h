/// One call with everything that can be seen of it, and how two of them are compared.
#pragma once

#include "samples.h"

#include <functional>
#include <gtest/gtest.h>

namespace tandem::sweep {

/// How the gradients of the outputs arrive: as a user's own tensors do, or as those of a sum, one number
/// spread out.
enum class Cotangents : uint8_t { Dense, Expanded };

/// What came of a forward and a backward.
struct Outcome {
  Tensors outputs, gradients;                 ///< gradients: one per input that requires grad
  std::string forward_error, backward_error;  ///< empty: none
  at::Tensor next_random;                     ///< the number that libtorch's generator gives afterwards

  bool threw() const { return !forward_error.empty() || !backward_error.empty(); }
};

/// Calls and differentiates after seeding libtorch's generator. Errors of any kind are kept.
Outcome run(const std::function<Tensors(const Tensors&)>& function, const Tensors& inputs, uint64_t seed,
            Cotangents cotangents);

/// Bit for bit: outputs with their dtype, sizes, strides and need for grad; gradients with their dtype and
/// sizes, undefined ones included; errors where eager has one; the state of the generator.
testing::AssertionResult same(const Outcome& eager, const Outcome& compiled);

}  // namespace tandem::sweep
