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

/// The same on doubles of the same values, with cotangents of the same values.
Outcome run_in_double(const std::function<Tensors(const Tensors&)>& function, const Tensors& inputs,
                      uint64_t seed, Cotangents cotangents);

/// How near numbers must be to eager's: the same bits, or equal but for rounding, or any where eager's are
/// numbers. Where bits do not matter a backward may also give what a kernel of libtorch's refuses to compute.
enum class Match : uint8_t { Bits, Rounded, Any };

/// Outputs with their dtype, sizes, strides and need for grad; gradients with their dtype and sizes,
/// undefined ones included; errors where eager has one; the state of the generator.
testing::AssertionResult same(const Outcome& eager, const Outcome& compiled, Match match = Match::Bits);

/// The same of any numbers, of which none is farther from those of doubles than four times what eager's are,
/// but for rounding.
testing::AssertionResult as_exact(const Outcome& eager, const Outcome& compiled, const Outcome& exact);

}  // namespace tandem::sweep
