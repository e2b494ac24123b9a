/// Code of one kernel, linked: it runs wherever it lies, and needs nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tandem::native {

/// Code and its constants, which lie where the next page behind the code begins.
struct Image {
  std::vector<uint8_t> code, constants;
  uint64_t entry = 0;  ///< where in the code the kernel begins
};

constexpr uint64_t page = 4096;

constexpr uint64_t padded_to(uint64_t size, uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

/// The object that holds a function which others call.
using FindObject = std::function<std::span<const uint8_t>(const std::string& name)>;

/// Links a relocatable ELF object, whose one kernel has this name, with what it calls. Throws Error where
/// they hold anything else than code, constants and places of the one in the other.
Image link(std::span<const uint8_t> object, const std::string& kernel, const FindObject& find);

}  // namespace tandem::native
