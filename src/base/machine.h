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

/// Version of Tandem and the hash over its code: equal in the library and in programs that hold the code
/// themselves.
const std::string& tandem_identity();

}  // namespace tandem
