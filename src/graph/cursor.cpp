#include "graph/cursor.h"

#include <tandem/error.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>

#include "graph/bytes.h"
#include "graph/vocabulary.h"

namespace tandem {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool in_word(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '.'; }
bool in_number(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '+' || c == '-'; }

/// The whole of `text` as a number, or false.
template <class Number>
bool read_all(std::string_view text, Number& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

void Cursor::complain(const std::string& what) const {
  const auto line = 1 + std::count(text_.begin(), text_.begin() + std::ptrdiff_t(position_), '\n');
  throw Error("The text of a graph is wrong in line " + std::to_string(line) + ": " + what);
}

void Cursor::fail(const std::string& expected) const {
  std::string_view rest = text_.substr(position_);
  rest = rest.substr(0, std::min<size_t>(rest.find('\n'), 30));
  complain("expected " + expected + ", found " + (position_ == text_.size() ? "the end" : in_quotes(rest)) +
           ".");
}

void Cursor::skip_space() {
  while (position_ < text_.size() && (next() == ' ' || next() == '\n' || next() == '\t' || next() == '\r'))
    ++position_;
}

bool Cursor::at_end() {
  skip_space();
  return position_ == text_.size();
}

bool Cursor::sees(std::string_view mark) {
  skip_space();
  return text_.substr(position_).starts_with(mark);
}

bool Cursor::accept(std::string_view mark) {
  if (!sees(mark)) return false;
  position_ += mark.size();
  return true;
}

void Cursor::expect(std::string_view mark) {
  if (!accept(mark)) fail(in_quotes(mark));
}

std::string_view Cursor::peek_word() {
  skip_space();
  size_t end = position_;
  auto inside = [&](size_t at) { return at < text_.size() && in_word(text_[at]); };
  auto joint = [&](size_t at) { return at < text_.size() && text_[at] == ':'; };
  while (inside(end) || (joint(end) && (inside(end + 1) || joint(end + 1)))) ++end;
  return text_.substr(position_, end - position_);
}

bool Cursor::accept_word(std::string_view word) {
  if (peek_word() != word) return false;
  position_ += word.size();
  return true;
}

std::string_view Cursor::word(const std::string& expected) {
  std::string_view word = peek_word();
  if (word.empty()) fail(expected);
  position_ += word.size();
  return word;
}

std::string_view Cursor::peek_number() {
  skip_space();
  size_t end = position_;
  while (end < text_.size() && in_number(text_[end])) ++end;
  return text_.substr(position_, end - position_);
}

int64_t Cursor::integer(const std::string& expected) {
  skip_space();
  int64_t number = 0;
  auto [end, error] = std::from_chars(text_.data() + position_, text_.data() + text_.size(), number);
  if (error != std::errc()) fail(expected);
  position_ = size_t(end - text_.data());
  return number;
}

bool Cursor::sees_number() {
  const std::string_view word = peek_number();
  return word == "inf" || word == "nan" || (!word.empty() && (is_digit(word[0]) || word[0] == '-'));
}

std::variant<int64_t, uint64_t, double> Cursor::number() {
  std::string_view digits = peek_number();
  std::variant<int64_t, uint64_t, double> number;
  if (digits == "nan" && text_.substr(position_ + 3).starts_with("(0x")) {
    uint64_t bits = 0;
    std::string_view inside = text_.substr(position_ + 6);
    inside = inside.substr(0, inside.find(')'));
    if (inside.size() > 16 || inside.size() + 6 + position_ >= text_.size()) fail("the bits of a nan");
    if (std::from_chars(inside.data(), inside.data() + inside.size(), bits, 16).ptr !=
            inside.data() + inside.size() ||
        inside.empty())
      fail("the bits of a nan");
    position_ += inside.size() + 7;
    return std::bit_cast<double>(bits);
  }
  if (digits.ends_with('u')
          ? !read_all(digits.substr(0, digits.size() - 1), number.emplace<uint64_t>())
          : !read_all(digits, number.emplace<int64_t>()) && !read_all(digits, number.emplace<double>()))
    fail("a number");
  // What from_chars makes of "nan" is not fixed to the bit.
  if (digits == "nan") number = std::numeric_limits<double>::quiet_NaN();
  position_ += digits.size();
  return number;
}

std::string Cursor::quoted_string() {
  expect("\"");
  std::string result;
  while (next() != '"') {
    if (position_ == text_.size()) fail("the closing quote of a string");
    char c = text_[position_++];
    if (c == '\\') {
      c = next();
      ++position_;
      if (c == 'n')
        c = '\n';
      else if (c == 'x') {
        const int high = position_ < text_.size() ? hex_digit(text_[position_]) : -1;
        const int low = position_ + 1 < text_.size() ? hex_digit(text_[position_ + 1]) : -1;
        if (high < 0 || low < 0) fail("two hexadecimal digits");
        c = char(high << 4 | low);
        position_ += 2;
      } else if (c != '"' && c != '\\') {
        --position_;
        fail("one of the escapes \\\\, \\\", \\n and \\x");
      }
    }
    result += c;
  }
  ++position_;
  return result;
}

std::string Cursor::hex_bytes() {
  expect("0x");
  std::string bytes;
  while (hex_digit(next()) >= 0) {
    const int high = hex_digit(text_[position_]);
    const int low = position_ + 1 < text_.size() ? hex_digit(text_[position_ + 1]) : -1;
    if (low < 0) fail("an even number of hexadecimal digits");
    bytes += char(high << 4 | low);
    position_ += 2;
  }
  return bytes;
}

}  // namespace tandem
