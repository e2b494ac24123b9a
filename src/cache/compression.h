/// Bytes made smaller, and back.
#pragma once

#include <string>
#include <string_view>

namespace tandem::cache {

/// Fewer bytes are not worth the time that it takes to get them back.
inline constexpr size_t shortest_compressed = 4096;

/// What `decompress` takes: by zstd, and the bytes themselves in a build without it.
std::string compress(std::string_view bytes);

/// The `size` bytes that were compressed; throws Error, with the end of a sentence, where they are not.
/// Memory stays in proportion to what really comes out, whatever was declared.
std::string decompress(std::string_view compressed, size_t size);

/// The same for a part of an entry, which says itself how large it is; a short one is left as it is.
std::string pack_bytes(std::string_view bytes);
/// Throws Error unless these are bytes that were packed.
std::string unpack_bytes(std::string_view packed);

}  // namespace tandem::cache
