/// Makes a failing program small.
#pragma once

#include "fuzz/program.h"

#include <functional>

namespace tandem::fuzz {

/// The smallest program found on which `fails` still holds: steps, outputs and given tensors are dropped,
/// sizes and dtypes made plain. `patience` is how many programs it tries.
Program shrink(Program program, const std::function<bool(const Program&)>& fails, size_t patience = 3000);

}  // namespace tandem::fuzz
