/// Operators that round otherwise.
#pragma once

#include <ATen/record_function.h>

namespace tandem::fuzz {

/// While one lives, each operator that this thread calls and that rounds gets arguments and gives results
/// which are changed at random in their last two bits. What only moves, chooses, compares or draws is left
/// alone, and so what a program computes exactly stays what it is. Where the seed is odd, operators of floats
/// compute in double besides.
class ShakenOperators {
 public:
  explicit ShakenOperators(uint64_t seed);
  ~ShakenOperators();
  ShakenOperators(const ShakenOperators&) = delete;

 private:
  at::CallbackHandle callback_;
};

}  // namespace tandem::fuzz
