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
  Tensors moves;                              ///< of both, where somebody asked how far eager's move
  std::string forward_error, backward_error;  ///< empty: none
  at::Tensor next_random;                     ///< the number that libtorch's generator gives afterwards

  bool threw() const { return !forward_error.empty() || !backward_error.empty(); }
};

/// Calls and differentiates after seeding libtorch's generator. Errors of any kind are kept.
Outcome run(const std::function<Tensors(const Tensors&)>& function, const Tensors& inputs, uint64_t seed,
            Cotangents cotangents);

/// Learns how exact eager's numbers are (fuzz/moves.h).
void find_moves(Outcome& eager, const std::function<Tensors(const Tensors&)>& function, const Tensors& inputs,
                uint64_t seed, Cotangents cotangents);

/// How near numbers must be to eager's. Where bits do not matter a backward may also give what a kernel of
/// libtorch's refuses to compute.
enum class Match : uint8_t { Bits, Rounded };

/// Outputs with their dtype, sizes, strides and need for grad; gradients with their dtype and sizes,
/// undefined ones included; errors where eager has one; the state of the generator. Elements bit for bit,
/// or where eager's moves are known within the table of tolerances.
testing::AssertionResult same(const Outcome& eager, const Outcome& compiled, Match match = Match::Bits);

}  // namespace tandem::sweep
