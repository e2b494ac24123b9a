/// The memory of a step, predicted half by half.
#pragma once

#include <tandem/partition.h>

namespace tandem {

/// The highest number of bytes that are alive at once, above those that were before the step.
struct Peaks {
  int64_t forward = 0, backward = 0;
};
Peaks predicted_peaks(const Partition& halves);

/// Inputs of the backward whose memory nobody else holds, with its bytes: one value a storage, since views of
/// it live in one storage of the backward too.
std::vector<std::pair<Value, int64_t>> given_to_backward(const Partition& halves);

}  // namespace tandem
