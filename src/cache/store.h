/// Where sealed bytes are kept under a name.
#pragma once

#include "cache/frame.h"

namespace tandem::cache {

struct Fetched {
  enum class State : uint8_t { Absent, Found, Damaged } state = State::Absent;
  std::string payload;
  std::string complaint;  ///< Damaged: why, as the end of a sentence
};

/// Thread-safe. Names are lower-case hex.
class Store {
 public:
  virtual ~Store() = default;
  virtual Fetched get(Kind kind, const std::string& name) = 0;
  /// Throws Error when it cannot be kept; what was there under the name stays whole in that case.
  virtual void put(Kind kind, const std::string& name, const std::string& payload) = 0;
};

}  // namespace tandem::cache
