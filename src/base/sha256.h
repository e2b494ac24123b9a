/// SHA-256.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

/// The 32 bytes.
std::string sha256_bytes(std::string_view bytes);
/// Them in lower-case hex.
std::string sha256(std::string_view bytes);

}  // namespace tandem
