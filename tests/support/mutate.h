/// Bytes changed at random in the ways that break parsers.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <string_view>

namespace tandem::test {

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  /// One to four changes.
  std::string operator()(std::string bytes) {
    using Change = void (Mutator::*)(std::string&);
    static constexpr Change changes[] = {
        &Mutator::flip_bit,     &Mutator::flip_bit,          &Mutator::set_byte,
        &Mutator::add_to_byte,  &Mutator::write_huge_number, &Mutator::truncate,
        &Mutator::swap_ranges,  &Mutator::copy_range,        &Mutator::remove_range,
        &Mutator::repeat_range, &Mutator::change_first_byte};
    for (size_t left = 1 + below(4); left > 0 && !bytes.empty(); --left)
      (this->*changes[below(std::size(changes))])(bytes);
    return bytes;
  }

  size_t below(size_t limit) { return size_t(random_() % limit); }

 private:
  static constexpr size_t longest_range = 64;

  size_t place(const std::string& bytes) { return below(bytes.size()); }
  size_t length(const std::string& bytes, size_t from) {
    return 1 + below(std::min(bytes.size() - from, longest_range));
  }

  void flip_bit(std::string& bytes) { bytes[place(bytes)] ^= char(1 << below(8)); }
  void set_byte(std::string& bytes) {
    static constexpr unsigned char telling[] = {0, 1, 2, 0x7f, 0x80, 0xff};
    bytes[place(bytes)] = char(telling[below(std::size(telling))]);
  }
  void add_to_byte(std::string& bytes) { bytes[place(bytes)] += char(below(9)) - 4; }
  void write_huge_number(std::string& bytes) {
    static constexpr std::string_view numbers[] = {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                                                   "\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                                                   "\xff\xff\xff\xff\x0f",
                                                   "\xff\xff\xff\xff\x07",
                                                   "\xff\xff\x7f",
                                                   "\xff\x7f"};
    const std::string_view number = numbers[below(std::size(numbers))];
    const size_t at = place(bytes);
    bytes.replace(at, below(2) ? 1 : std::min(number.size(), bytes.size() - at), number);
  }
  void truncate(std::string& bytes) { bytes.resize(place(bytes)); }
  void swap_ranges(std::string& bytes) {
    size_t a = place(bytes), b = place(bytes);
    if (a > b) std::swap(a, b);
    const size_t size = std::min({length(bytes, b), b - a});
    std::swap_ranges(bytes.begin() + int64_t(a), bytes.begin() + int64_t(a + size),
                     bytes.begin() + int64_t(b));
  }
  void copy_range(std::string& bytes) {
    const size_t from = place(bytes), to = place(bytes);
    const std::string range = bytes.substr(from, length(bytes, from));
    bytes.replace(to, std::min(range.size(), bytes.size() - to), range);
  }
  void remove_range(std::string& bytes) {
    const size_t from = place(bytes);
    bytes.erase(from, length(bytes, from));
  }
  void repeat_range(std::string& bytes) {
    const size_t from = place(bytes);
    const std::string range = bytes.substr(from, length(bytes, from));
    bytes.insert(place(bytes), range);
  }
  void change_first_byte(std::string& bytes) { bytes[0] = char(below(256)); }

  std::mt19937_64 random_;
};

}  // namespace tandem::test
