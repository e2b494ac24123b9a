#include "cache/frame.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "cache/compression.h"
#include "tandem/error.h"

namespace tandem::cache {
namespace {

// header, name, stored payload, HMAC-SHA-256 of all that (when signed), SHA-256 of everything before it
constexpr char kMagic[8] = {'\x89', 'T', 'A', 'N', 'D', 'E', 'M', '\n'};
constexpr size_t kDigest = 32;

enum class Encoding : uint8_t { Plain, Zstd };

struct Header {
  char magic[8];
  uint32_t version;
  uint8_t kind, encoding, is_signed, zero;
  uint64_t payload_size, stored_size, name_size;
};
static_assert(sizeof(Header) == 40 && std::has_unique_object_representations_v<Header>);
static_assert(std::endian::native == std::endian::little, "the header is written as it lies in memory");

struct Frame {
  Header header;
  std::string_view name, stored, before_signature, signature, before_checksum, checksum;
};

struct Refused {
  std::string complaint;
};

std::string sign(std::string_view bytes, std::string_view key) {
  std::string result(kDigest, 0);
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  if (!HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), data, bytes.size(),
            reinterpret_cast<unsigned char*>(result.data()), nullptr)) {
    throw Error("OpenSSL could not compute an HMAC-SHA-256; check its configuration.");
  }
  return result;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view take(std::string_view& rest, uint64_t size) {
  if (size > rest.size()) throw Refused{"was cut short"};
  const std::string_view taken = rest.substr(0, size);
  rest.remove_prefix(size);
  return taken;
}

// Another version may lay out all that follows in another way, so it is looked at before anything else.
Header read_header(std::string_view& rest) {
  if (!rest.starts_with(std::string_view(kMagic, sizeof kMagic)))
    throw Refused{"does not begin as Tandem's files do"};
  Header header;
  std::memcpy(&header, take(rest, sizeof header).data(), sizeof header);
  if (header.version != format_version) {
    throw Refused{"has format version " + std::to_string(header.version) +
                  ", and this build of Tandem reads version " + std::to_string(format_version)};
  }
  return header;
}

Frame split(std::string_view sealed) {
  std::string_view rest = sealed;
  Frame frame;
  frame.header = read_header(rest);
  frame.name = take(rest, frame.header.name_size);
  frame.stored = take(rest, frame.header.stored_size);
  frame.before_signature = sealed.substr(0, sealed.size() - rest.size());
  frame.signature = take(rest, frame.header.is_signed ? kDigest : 0);
  frame.before_checksum = sealed.substr(0, sealed.size() - rest.size());
  frame.checksum = take(rest, kDigest);
  if (!rest.empty()) throw Refused{"has bytes after its end"};
  return frame;
}

void check_whole(const Frame& frame) {
  if (frame.checksum != sha256_bytes(frame.before_checksum)) throw Refused{"does not match its checksum"};
}

void check_signature(const Frame& frame, std::string_view key) {
  if (key.empty()) return;
  if (frame.signature.empty()) throw Refused{"is not signed, and there is a signing key"};
  if (!equal_in_constant_time(frame.signature, sign(frame.before_signature, key)))
    throw Refused{"is signed with another key"};
}

void check_asked_for(const Frame& frame, Kind kind, std::string_view name) {
  if (frame.header.kind != static_cast<uint8_t>(kind))
    throw Refused{kind == Kind::Entry ? "is no entry" : "is no artifact"};
  if (frame.name != name) throw Refused{"was written under another name"};
}

std::string payload_of(const Frame& frame, size_t largest) {
  const Header& header = frame.header;
  if (header.is_signed > 1 || header.zero != 0 || header.encoding > static_cast<uint8_t>(Encoding::Zstd))
    throw Refused{"has flags that mean nothing"};
  if (header.payload_size > largest)
    throw Refused{"declares " + std::to_string(header.payload_size) + " bytes, more than the " +
                  std::to_string(largest) + " allowed"};
  if (header.encoding == static_cast<uint8_t>(Encoding::Zstd)) {
    try {
      return decompress(frame.stored, header.payload_size);
    } catch (const Error& error) {
      throw Refused{error.what()};
    }
  }
  if (header.payload_size != frame.stored.size()) throw Refused{"does not have the size that it declares"};
  return std::string(frame.stored);
}

}  // namespace

std::string seal(Kind kind, std::string_view name, std::string_view payload, std::string_view signing_key) {
  const std::string compressed = payload.size() < shortest_compressed ? std::string() : compress(payload);
  // Getting them back takes longer than reading twice as many.
  const bool is_smaller = !compressed.empty() && compressed.size() <= payload.size() / 2;
  const std::string_view stored = is_smaller ? std::string_view(compressed) : payload;

  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = format_version;
  header.kind = static_cast<uint8_t>(kind);
  header.encoding = static_cast<uint8_t>(is_smaller ? Encoding::Zstd : Encoding::Plain);
  header.is_signed = !signing_key.empty();
  header.payload_size = payload.size();
  header.stored_size = stored.size();
  header.name_size = name.size();

  std::string sealed;
  sealed.reserve(sizeof header + name.size() + stored.size() + 2 * kDigest);
  sealed.append(reinterpret_cast<const char*>(&header), sizeof header).append(name).append(stored);
  if (header.is_signed) sealed += sign(sealed, signing_key);
  return sealed += sha256_bytes(sealed);
}

Opened open(Kind kind, std::string_view name, std::string_view sealed, std::string_view signing_key,
            size_t largest) {
  try {
    const Frame frame = split(sealed);
    check_whole(frame);
    check_signature(frame, signing_key);
    check_asked_for(frame, kind, name);
    return {payload_of(frame, largest), {}};
  } catch (Refused& refused) {
    return {{}, std::move(refused.complaint)};
  }
}

}  // namespace tandem::cache
