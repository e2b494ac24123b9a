#include "cache/compression.h"

#ifdef TANDEM_HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

#include <algorithm>
#include <memory>

#include "graph/wire.h"
#include "tandem/error.h"

namespace tandem::cache {
namespace {

enum PackedAs : uint8_t { AsItIs, Compressed, WaysToPack };

#ifdef TANDEM_HAVE_ZSTD

[[noreturn]] void refuse_size() { throw Error("does not have the size that it declares"); }

size_t or_refuse(size_t result) {
  if (ZSTD_isError(result))
    throw Error(std::string("cannot be decompressed (") + ZSTD_getErrorName(result) + ")");
  return result;
}

/// In a stream, so that a size that was declared too large costs nothing: the room grows with what comes out.
std::string decompress_in_steps(std::string_view compressed, size_t size, size_t room) {
  const std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(),
                                                                        ZSTD_freeDStream);
  if (!stream) throw std::bad_alloc();
  std::string bytes(room, 0);
  ZSTD_inBuffer in{compressed.data(), compressed.size(), 0};
  size_t written = 0;
  for (size_t rest = 1; rest != 0;) {
    if (written == bytes.size()) bytes.resize(std::min(size, 2 * written));
    ZSTD_outBuffer out{bytes.data(), bytes.size(), written};
    const size_t read = in.pos;
    rest = or_refuse(ZSTD_decompressStream(stream.get(), &out, &in));
    const bool is_stuck = rest != 0 && out.pos == written && in.pos == read;
    if (is_stuck) refuse_size();
    written = out.pos;
  }
  if (in.pos != in.size || written != size) refuse_size();
  return bytes;
}

#endif

}  // namespace

#ifdef TANDEM_HAVE_ZSTD

std::string compress(std::string_view bytes) {
  std::string compressed(ZSTD_compressBound(bytes.size()), 0);
  const size_t size =
      ZSTD_compress(compressed.data(), compressed.size(), bytes.data(), bytes.size(), ZSTD_CLEVEL_DEFAULT);
  if (ZSTD_isError(size))
    throw Error(std::string("zstd could not compress a cache entry: ") + ZSTD_getErrorName(size) + ".");
  compressed.resize(size);
  return compressed;
}

std::string decompress(std::string_view compressed, size_t size) {
  const size_t room = std::max<size_t>(16 * compressed.size(), 1 << 16);
  if (size > room) return decompress_in_steps(compressed, size, room);
  std::string bytes(size, 0);
  const size_t written = ZSTD_decompress(bytes.data(), size, compressed.data(), compressed.size());
  if (ZSTD_getErrorCode(written) == ZSTD_error_dstSize_tooSmall ||
      (!ZSTD_isError(written) && written != size))
    refuse_size();
  or_refuse(written);
  return bytes;
}

#else

std::string compress(std::string_view bytes) { return std::string(bytes); }

std::string decompress(std::string_view, size_t) {
  throw Error(
      "is compressed with zstd, which this build of Tandem was made without; build it where libzstd is "
      "installed");
}

#endif

std::string pack_bytes(std::string_view bytes) {
  ByteWriter writer;
  const std::string compressed = bytes.size() < shortest_compressed ? std::string() : compress(bytes);
  if (compressed.empty() || compressed.size() >= bytes.size()) {
    writer.byte(AsItIs);
    writer.raw(bytes);
  } else {
    writer.byte(Compressed);
    writer.number(bytes.size());
    writer.raw(compressed);
  }
  return writer.take();
}

std::string unpack_bytes(std::string_view packed) {
  ByteReader reader(packed);
  if (reader.byte_below(WaysToPack, "way to pack") == AsItIs) return std::string(reader.rest());
  const size_t size = reader.number();
  try {
    return decompress(reader.rest(), size);
  } catch (const Error& error) {
    reader.refuse(std::string("a part ") + error.what());
  }
}

}  // namespace tandem::cache
