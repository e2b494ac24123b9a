/// The memory of a step, predicted half by half.
#pragma once

#include <tandem/partition.h>

#include "partition/occupancy.h"

namespace tandem {

/// The highest number of bytes that are alive at once, above those that were before the step.
struct Peaks {
  int64_t forward = 0, backward = 0;
};
Peaks predicted_peaks(const Partition& halves);

/// The same of one graph, with what was alive before it. `live`: that, and then what is alive behind it.
int64_t predicted_peak(const Graph& graph, const GivenBytes& given, int64_t& live);

/// Inputs of the backward whose memory nobody else holds: one value a storage, since views of it live in one
/// storage of the backward too.
GivenBytes given_to_backward(const Partition& halves);

}  // namespace tandem
