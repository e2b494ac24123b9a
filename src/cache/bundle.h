/// Many entries and artifacts in one file, so that a job on many machines starts warm.
#pragma once

#include <filesystem>
#include <vector>

#include "cache/frame.h"

namespace tandem::cache {

struct BundleItem {
  Kind kind;
  std::string name;  ///< lower-case hex
  std::string payload;
};

/// The file has these items afterwards, signed when there is a key, or (Error) what it had before.
void write_bundle(const std::filesystem::path& path, const std::vector<BundleItem>& items,
                  std::string_view signing_key);

/// All items in their order, once every byte of the file was compared and, when there is a key, its
/// signature. Throws Error otherwise, and when the payloads have more than `largest` bytes together; memory
/// stays in proportion to the file and to that.
std::vector<BundleItem> read_bundle(const std::filesystem::path& path, std::string_view signing_key,
                                    size_t largest = size_t(1) << 32);

}  // namespace tandem::cache
