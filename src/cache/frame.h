/// Bytes that say what they are and prove that they are whole: what every file, remote value and bundle
/// member is wrapped in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/sha256.h"

namespace tandem::cache {

/// Of frames; remote keys have it in them, so that builds which cannot read each other do not meet.
inline constexpr uint32_t format_version = 3;

/// An entry says how a function is called and names its parts; an artifact is one part, named after the
/// SHA-256 of its bytes.
enum class Kind : uint8_t { Entry, Artifact };

/// The payload, compressed where that makes it half as long, with magic, format version, kind, name and
/// lengths before it; after it an HMAC-SHA-256 over all of that when there is a key, and a SHA-256 of
/// everything.
std::string seal(Kind kind, std::string_view name, std::string_view payload, std::string_view signing_key);

struct Opened {
  std::string payload;
  /// why the bytes are refused, as the end of a sentence ("was cut short"); empty when they are not
  std::string complaint;
};

/// The payload, when the bytes are whole, of this kind and name and, when there is a key, signed with it.
/// Nothing is trusted before it was compared; memory stays in proportion to the bytes given and to `largest`,
/// which the payload may not exceed.
Opened open(Kind kind, std::string_view name, std::string_view sealed, std::string_view signing_key,
            size_t largest = size_t(1) << 32);

}  // namespace tandem::cache
