/// A set of small numbers.
#pragma once

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace tandem {

class Bits {
 public:
  Bits() = default;
  explicit Bits(size_t size) : words_((size + width - 1) / width) {}
  static Bits all(size_t size) {
    Bits bits(size);
    for (size_t i = 0; i < size; ++i) bits.insert(i);
    return bits;
  }

  void insert(size_t i) { words_[i / width] |= uint64_t(1) << (i % width); }
  bool has(size_t i) const { return (words_[i / width] >> (i % width)) & 1; }
  bool empty() const {
    return std::all_of(words_.begin(), words_.end(), [](uint64_t word) { return word == 0; });
  }

  // Of two sets that were made for the same size.
  Bits& operator|=(const Bits& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  bool meets(const Bits& other) const {
    for (size_t i = 0; i < words_.size(); ++i)
      if (words_[i] & other.words_[i]) return true;
    return false;
  }
  bool is_within(const Bits& other) const {
    for (size_t i = 0; i < words_.size(); ++i)
      if (words_[i] & ~other.words_[i]) return false;
    return true;
  }
  friend bool operator==(const Bits&, const Bits&) = default;
  friend auto operator<=>(const Bits& a, const Bits& b) {
    return std::lexicographical_compare_three_way(a.words_.begin(), a.words_.end(), b.words_.begin(),
                                                  b.words_.end());
  }

 private:
  static constexpr size_t width = 64;
  c10::SmallVector<uint64_t, 4> words_;
};

}  // namespace tandem
