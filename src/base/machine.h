/// What compiled code was made with and for.
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

/// The processor's model and the instruction sets that it offers, a line each; equal on machines with equal
/// processors, whatever their kernels and clock rates.
const std::string& cpu_identity();

/// The graphics processor's model and compute capability.
std::string gpu_identity(int index);

/// Version, build settings and build id of libtorch.
const std::string& libtorch_identity();

/// Version and build id of this library: the linker's hash over our code. Empty when it was linked without
/// one.
const std::string& tandem_identity();

}  // namespace tandem
