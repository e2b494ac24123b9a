/// Makes random programs.
#pragma once

#include "fuzz/program.h"

namespace tandem::fuzz {

/// The program with this number of a series; the same everywhere for the same seed.
Program generate(uint64_t seed, uint64_t number);

}  // namespace tandem::fuzz
