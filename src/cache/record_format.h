/// What the writer and the reader of entries agree on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem::cache {

constexpr uint64_t entry_format = 4;
constexpr size_t artifact_bytes = 32;  ///< of the name of one

}  // namespace tandem::cache
