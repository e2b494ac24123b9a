/// Programs as C++ source.
#pragma once

#include "fuzz/program.h"

namespace tandem::fuzz {

/// A function `given(seed, before)` that makes the tensors and a function `program(given)` of them, to be
/// compiled against libtorch and Tandem.
std::string to_cpp(const Program& program);

}  // namespace tandem::fuzz
