/// Numbers and texts to bytes and back. The reader trusts nothing: every step is checked against the bytes
/// that are left.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tandem {

class ByteWriter {
 public:
  void reserve(size_t bytes) { bytes_.reserve(bytes); }
  void byte(uint8_t value) { bytes_ += char(value); }
  /// Seven bits a byte, the low ones first; small numbers are short.
  void number(uint64_t value);
  /// Numbers of either sign; those near 0 are short.
  void integer(int64_t value) { number(uint64_t(value) << 1 ^ uint64_t(value >> 63)); }
  void real(double value);
  void raw(std::string_view bytes) { bytes_ += bytes; }
  void text(std::string_view text) {
    number(text.size());
    raw(text);
  }
  /// How many there are, then `write(item)` for each.
  template <class Items, class Write>
  void list(const Items& items, Write&& write) {
    number(items.size());
    for (const auto& item : items) write(item);
  }

  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Throws Error, with the place, on bytes that are not what was asked for.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  uint8_t byte() {
    if (at_ == bytes_.size()) refuse("they end too early");
    return uint8_t(bytes_[at_++]);
  }
  bool flag() { return byte_below(2, "flag"); }
  uint8_t byte_below(unsigned limit, const char* what) {
    const uint8_t value = byte();
    if (value >= limit) refuse_number(value, what);
    return value;
  }
  uint64_t number() {
    if (at_ < bytes_.size() && uint8_t(bytes_[at_]) < 0x80) return uint8_t(bytes_[at_++]);
    return long_number();
  }
  uint64_t number_below(uint64_t limit, const char* what) {
    const uint64_t value = number();
    if (value >= limit) refuse_number(value, what);
    return value;
  }
  int64_t integer();
  double real();
  std::string_view raw(size_t size);
  std::string_view text() { return raw(count(1)); }
  /// How many things follow, of at least `least_bytes` each: never more than the bytes that are left can
  /// hold.
  size_t count(size_t least_bytes);
  template <class Read>
  void list(size_t least_bytes, Read&& read) {
    for (size_t left = count(least_bytes); left > 0; --left) read();
  }
  /// All that was not read yet.
  std::string_view rest() { return raw(bytes_.size() - at_); }
  void expect_end() const;

  [[noreturn]] void refuse(const std::string& what) const;

 private:
  uint64_t long_number();
  [[noreturn]] void refuse_number(uint64_t value, const char* what) const;

  std::string_view bytes_;
  size_t at_ = 0;
};

}  // namespace tandem
