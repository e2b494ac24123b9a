/// Finding the values of one graph again in another.
#pragma once

#include <tandem/partition.h>

namespace tandem {

/// For every value, a number that says how it is computed; equal programs give equal numbers whatever their values are called. Two draws of random numbers
/// differ: no pass leaves one out, so they can be counted. `apart`: what the forward returned, and the caller may have written since, is another value than what
/// the forward or a backward computes again.
std::vector<uint64_t> computation_keys(const Joint& joint, bool apart);

}  // namespace tandem
