#include "native/artifact.h"

#include <cstring>
#include <type_traits>

#include "base/sha256.h"

namespace tandem::native {
namespace {

constexpr char artifact_magic[8] = {'\x89', 'T', 'D', 'C', 'O', 'D', 'E', '\n'};
constexpr uint32_t artifact_version = 1;
constexpr size_t digest_size = 32;

/// Features, code, constants and the hash of everything before it follow.
struct ArtifactHeader {
  char magic[8];
  uint32_t version, zero;
  uint64_t entry, features_size, code_size, constants_size;
  char kernel[digest_size];
};
static_assert(std::has_unique_object_representations_v<ArtifactHeader>);

std::string_view as_text(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class Bytes>
void append(std::vector<uint8_t>& to, const Bytes& bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Takes so many bytes off the front, or says that there are not so many.
bool take(std::span<const uint8_t>& rest, uint64_t size, std::span<const uint8_t>& taken) {
  if (size > rest.size()) return false;
  taken = rest.first(size);
  rest = rest.subspan(size);
  return true;
}

bool is_ours(const ArtifactHeader& header, std::string_view kernel_text) {
  return std::memcmp(header.magic, artifact_magic, sizeof(artifact_magic)) == 0 &&
         header.version == artifact_version && header.zero == 0 &&
         sha256_bytes(kernel_text) == std::string_view(header.kernel, digest_size);
}

}  // namespace

std::vector<uint8_t> to_bytes(const Image& image, std::string_view kernel_text, std::string_view features) {
  ArtifactHeader header{};
  std::memcpy(header.magic, artifact_magic, sizeof(artifact_magic));
  header.version = artifact_version;
  header.entry = image.entry;
  header.features_size = features.size();
  header.code_size = image.code.size();
  header.constants_size = image.constants.size();
  std::memcpy(header.kernel, sha256_bytes(kernel_text).data(), digest_size);
  std::vector<uint8_t> bytes;
  append(bytes, std::span(reinterpret_cast<const uint8_t*>(&header), sizeof(header)));
  append(bytes, features);
  append(bytes, image.code);
  append(bytes, image.constants);
  append(bytes, sha256_bytes(as_text(bytes)));
  return bytes;
}

std::optional<Artifact> read_artifact(std::span<const uint8_t> bytes, std::string_view kernel_text) {
  ArtifactHeader header;
  if (bytes.size() < sizeof(header) + digest_size) return {};
  const std::span<const uint8_t> hashed = bytes.first(bytes.size() - digest_size);
  if (sha256_bytes(as_text(hashed)) != as_text(bytes.last(digest_size))) return {};
  std::memcpy(&header, hashed.data(), sizeof(header));
  if (!is_ours(header, kernel_text)) return {};
  std::span<const uint8_t> rest = hashed.subspan(sizeof(header)), features;
  Artifact artifact{};
  if (!take(rest, header.features_size, features) || !take(rest, header.code_size, artifact.code) ||
      !take(rest, header.constants_size, artifact.constants) || !rest.empty())
    return {};
  if (header.entry >= artifact.code.size()) return {};
  artifact.entry = header.entry;
  artifact.features = as_text(features);
  return artifact;
}

}  // namespace tandem::native
