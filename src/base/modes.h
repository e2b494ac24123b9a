/// Switches of libtorch's that a program runs under.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <string>

namespace tandem {

/// The modes of a thread that change what a program records, and those that change how it is computed.
struct Modes {
  /// grad mode, inference mode, autocast, determinism, attention kernels: a bit each
  uint64_t switches = 0;
  c10::ScalarType default_dtype = c10::kFloat, autocast_cpu = c10::kFloat, autocast_cuda = c10::kFloat;
  /// Precision of float32, reductions of half precision, flushed denormals and the like, a few bits each.
  /// libtorch's kernels ask for them when they run; code of other makers may have them built in, and only for
  /// that are they read.
  std::optional<uint64_t> arithmetic = {};
  int threads = 0;  ///< of libtorch's pool, for which such code may have been divided; where it is asked for

  static Modes now(bool with_arithmetic);
  /// What is on and which dtypes hold, a line each; not the threads, which matter on some devices alone.
  std::string to_string() const;
  friend bool operator==(const Modes&, const Modes&) = default;
};

}  // namespace tandem
