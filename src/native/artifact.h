/// Machine code as bytes that outlive the process.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "native/image.h"

namespace tandem::native {

/// What is in the bytes; it points into them.
struct Artifact {
  std::span<const uint8_t> code, constants;
  uint64_t entry;
  std::string_view features;  ///< of the processor, that the code needs
};

/// Magic, version, the hash of the kernel's text, the features, code and constants, and a hash of all that.
std::vector<uint8_t> to_bytes(const Image& image, std::string_view kernel_text, std::string_view features);

/// Nothing where the bytes are damaged or are of another kernel. Nothing that they say is used before it was
/// compared with what is there.
std::optional<Artifact> read_artifact(std::span<const uint8_t> bytes, std::string_view kernel_text);

}  // namespace tandem::native
