/// Machine code of kernels: compiled by a plugin that holds LLVM and is opened when something must be
/// compiled, or loaded from bytes without it.
#pragma once

#include "loops/kernel.h"

#include <memory>
#include <span>

namespace tandem::native {

/// Code in memory that can be executed and not written.
class MachineCode {
 public:
  virtual ~MachineCode() = default;
  virtual loops::Code entry() const = 0;
  /// From which `load_code` gives it back, in this process or another on such a processor.
  virtual const std::vector<uint8_t>& bytes() const = 0;
};
using CodePointer = std::shared_ptr<const MachineCode>;

/// Whether code has an expression of this operator and type; what it lacks stays with libtorch.
bool supports(loops::Op op, loops::Type type);

/// Whether this build has the plugin, and it can be opened.
bool can_compile();

/// Code for each kernel: remembered, else compiled, several at a time. Throws Error where something must be
/// compiled and `can_compile` is false. Counts `kernel_compiled` and `kernel_reused`.
std::vector<CodePointer> code_of(std::span<const loops::Kernel> kernels);

/// Code that `bytes` holds for this kernel, remembered from now on; null where the bytes are damaged, are of
/// another kernel, or were made for a processor with features that this one lacks.
CodePointer load_code(const loops::Kernel& kernel, std::span<const uint8_t> bytes);

/// Forgets the code that is remembered; what is in use stays.
void forget_code();

/// A kernel as people read it.
struct Texts {
  std::string loops, ir, assembly;
};
/// Compiles it, beside what is remembered. Throws Error where `can_compile` is false.
Texts texts_of(const loops::Kernel& kernel);

}  // namespace tandem::native
