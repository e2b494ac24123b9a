/// Memory that holds code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tandem::native {

/// A copy of linked code that can be executed and of its constants, which can be read; neither can be
/// written, and at no time can anything be both written and executed.
class Executable {
 public:
  /// Throws Error where the system does not allow it.
  Executable(std::span<const uint8_t> code, std::span<const uint8_t> constants);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const uint8_t* code() const { return memory_; }

 private:
  uint8_t* memory_;
  size_t size_;
};

}  // namespace tandem::native
