/// Switches of libtorch's that a program runs under.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>

namespace tandem {

/// The modes of a thread that change what a program records.
struct Modes {
  uint64_t switches = 0;                     ///< grad mode, inference mode, autocast, determinism, attention kernels: a bit each
  c10::ScalarType default_dtype = c10::kFloat, autocast_cpu = c10::kFloat, autocast_cuda = c10::kFloat;
  static Modes now();
  /// What is on and which dtypes hold, a line each.
  std::string to_string() const;
  friend bool operator==(const Modes&, const Modes&) = default;
};

}  // namespace tandem
