/// What the processor offers that machine code may use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

/// Names of LLVM's, with commas between, of all that this processor and its system offer of those that code
/// is compiled for.
const std::string& processor_features();

/// Whether all of these names are among them.
bool processor_has(std::string_view features);

/// Whether it has what all code needs.
bool processor_suffices();

/// How many bytes the widest registers hold that machine code computes in.
int64_t processor_register_bytes();

}  // namespace tandem
