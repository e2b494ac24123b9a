/// What the tests of the remote cache share.
#pragma once

#include <random>

#include "cache/redis_server.h"
#include "cache/remote_store.h"

namespace tandem::cache {

using namespace std::chrono_literals;
using State = Fetched::State;

inline const std::string entry = "ab12", other = "cd34";
inline const std::string entry_key = "tandem:" + std::to_string(format_version) + ":entry:" + entry;

/// Waits so long that a machine busy with other things does not count as a slow server.
inline RemoteLimits patient() {
  RemoteLimits limits;
  limits.wait = limits.transfer = limits.write = 20s;
  return limits;
}

/// A clock that moves when told to; threads that outlive their store may still look at it.
struct HandClock {
  std::shared_ptr<std::atomic<int64_t>> milliseconds = std::make_shared<std::atomic<int64_t>>(0);

  void advance(std::chrono::milliseconds by) { *milliseconds += by.count(); }
  RemoteLimits limits() const {
    RemoteLimits limits = patient();
    limits.now = [shared = milliseconds] {
      return RemoteLimits::Clock::time_point(std::chrono::milliseconds(*shared));
    };
    return limits;
  }
  RemoteLimits short_limits() const {
    RemoteLimits own = limits();
    own.wait = RemoteLimits().wait;
    own.transfer = RemoteLimits().wait;
    return own;
  }
};

/// How long it took, against a bound that is far above what is promised, for machines that are busy.
template <class Act>
void expect_soon(Act act, std::chrono::milliseconds bound = 1s) {
  const auto begin = std::chrono::steady_clock::now();
  act();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, bound);
}

inline std::string noise(size_t size) {
  std::mt19937_64 random(size);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = char(random());
  return bytes;
}

inline std::string url_of(uint16_t port) { return "redis://127.0.0.1:" + std::to_string(port); }

}  // namespace tandem::cache
