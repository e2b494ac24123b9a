/// What a device does in a second: what the seconds of nodes are made of.
#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>
#include <string_view>

namespace tandem {

/// Only their ratios matter to a partitioner.
struct Rates {
  double call_seconds;  ///< what the call of an operator takes by itself
  double bytes;         ///< read and written
  double elements;      ///< of an addition; FactRow::cost says how many additions an operator is worth
  double flops;         ///< of products of 32 bits and wider
  double narrow_flops;  ///< of products of 16 bits
};

/// Of an ordinary machine's device.
const Rates& built_in_rates(c10::Device device);

/// Of this very device, by running a few operators on it for some hundredths of a second, with as many
/// threads as libtorch has; rounded to a quarter of a power of two. Throws what libtorch throws, where there
/// is no memory for one.
Rates measure_rates(c10::Device device);

/// Rounded ones as words: each is the number of quarters in its power of two.
std::string to_words(const Rates& rates);
/// The same back; nothing where the words are not those of rates.
std::optional<Rates> rates_of_words(std::string_view words);

/// For people.
std::string describe(const Rates& rates);

}  // namespace tandem
