/// Reads a text from front to back; every step checks its bounds and fails with the line and what was
/// expected there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace tandem {

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  /// Throws Error; `expected` completes "expected …".
  [[noreturn]] void fail(const std::string& expected) const;
  /// Throws Error; `what` is a whole sentence.
  [[noreturn]] void complain(const std::string& what) const;

  bool at_end();
  /// Whether `mark` comes next, white space aside; `accept` also steps over it.
  bool sees(std::string_view mark);
  bool accept(std::string_view mark);
  void expect(std::string_view mark);
  /// As above, for a whole word.
  bool accept_word(std::string_view word);

  /// The letters, digits, `_`, `.` and colons between them that come next, without stepping over them; may be
  /// empty.
  std::string_view peek_word();
  std::string_view word(const std::string& expected);

  int64_t integer(const std::string& expected);
  bool sees_number();
  /// An integer, an unsigned integer with a `u` behind it, or a floating-point number.
  std::variant<int64_t, uint64_t, double> number();
  /// Text in double quotes, its escapes undone.
  std::string quoted_string();
  /// The bytes behind `0x`.
  std::string hex_bytes();

 private:
  void skip_space();
  std::string_view peek_number();
  char next() const { return position_ < text_.size() ? text_[position_] : '\0'; }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace tandem
