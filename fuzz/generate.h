/// Makes random programs.
#pragma once

#include "fuzz/program.h"

namespace tandem::fuzz {

/// The program with this number of a series; the same everywhere for the same seed.
Program generate(uint64_t seed, uint64_t number);

/// Whether programs of this process also keep state, set generators and gradients, register hooks and call custom functions: other programs for the same seed.
void generate_state(bool wanted);

}  // namespace tandem::fuzz
