#include "graph/wire.h"

#include <tandem/error.h>

#include <bit>

namespace tandem {

void ByteWriter::number(uint64_t value) {
  while (value >= 0x80) {
    byte(uint8_t(value) | 0x80);
    value >>= 7;
  }
  byte(uint8_t(value));
}

void ByteWriter::real(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  for (int shift = 0; shift < 64; shift += 8) byte(uint8_t(bits >> shift));
}

void ByteReader::refuse(const std::string& what) const {
  throw Error("the bytes of a cache entry make no sense at " + std::to_string(at_) + " of " +
              std::to_string(bytes_.size()) + ": " + what);
}

void ByteReader::refuse_number(uint64_t value, const char* what) const {
  refuse("there is no " + std::string(what) + " " + std::to_string(value));
}

uint64_t ByteReader::long_number() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t next = byte();
    if (shift == 63 && next > 1) break;
    value |= uint64_t(next & 0x7f) << shift;
    if (next < 0x80) return value;
  }
  refuse("a number has more than 64 bits");
}

int64_t ByteReader::integer() {
  const uint64_t value = number();
  return int64_t(value >> 1 ^ -(value & 1));
}

double ByteReader::real() {
  uint64_t bits = 0;
  for (int shift = 0; shift < 64; shift += 8) bits |= uint64_t(byte()) << shift;
  return std::bit_cast<double>(bits);
}

std::string_view ByteReader::raw(size_t size) {
  if (size > bytes_.size() - at_) refuse("they end too early");
  at_ += size;
  return bytes_.substr(at_ - size, size);
}

size_t ByteReader::count(size_t least_bytes) {
  const uint64_t count = number();
  if (count > (bytes_.size() - at_) / least_bytes)
    refuse("the rest is too short for " + std::to_string(count) + " items");
  return size_t(count);
}

void ByteReader::expect_end() const {
  if (at_ != bytes_.size()) refuse("something follows behind the end");
}

}  // namespace tandem
