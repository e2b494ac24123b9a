/// Kernels with all that their code is given at a run but addresses.
#pragma once

#include "loops/kernel.h"

#include <tandem/graph.h>

namespace tandem::loops {

/// Where a buffer begins: in a tensor that is read, one that is made, memory of the group's own, or nowhere,
/// if all that is asked for is how far places are in it.
struct Memory {
  enum class Of : uint8_t { Input, Output, Scratch, None } of = Of::Input;
  int32_t index = 0;
  int64_t offset = 0;  ///< in bytes, from the tensor's first element
  friend bool operator==(const Memory&, const Memory&) = default;
};

struct Launch {
  Kernel kernel;
  std::vector<Memory> buffers;
  std::vector<int64_t> shape;  ///< as Code takes it
  std::vector<Number> numbers;
  int64_t units = 0;
  double nanoseconds = 0;  ///< that it takes on one thread, about
};

/// What one group of nodes became: launches, one behind the other.
struct Fused {
  std::vector<Value> inputs, outputs;
  std::vector<int64_t> scratch;  ///< bytes of each piece of memory of its own
  std::vector<Launch> launches;
};

}  // namespace tandem::loops
