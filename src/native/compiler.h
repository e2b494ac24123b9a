/// The plugin that holds LLVM, as the library uses it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "loops/kernel.h"

namespace tandem::native {

/// Whether there is the plugin, and it can be opened; opens it.
bool has_compiler();

/// The relocatable object that holds the kernel's code, for processors with these features. Throws Error
/// without a compiler.
std::vector<uint8_t> compile_object(const loops::Kernel& kernel, const std::string& features);

/// The object of a function that kernels call; remembered.
std::span<const uint8_t> function_object(const std::string& name, const std::string& features);

/// The kernel as LLVM's IR and as assembly.
struct CompilerTexts {
  std::string ir, assembly;
};
CompilerTexts compiler_texts(const loops::Kernel& kernel);

}  // namespace tandem::native
