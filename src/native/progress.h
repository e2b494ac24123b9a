/// Says how far a compile is that takes long.
#pragma once

#include <chrono>
#include <mutex>

namespace tandem::native {

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  /// Of so many kernels; says nothing before `patience` is over, nor twice within it.
  explicit Progress(size_t kernels, Clock::duration patience = std::chrono::seconds(1))
      : kernels_(kernels), patience_(patience) {}

  /// One more kernel is compiled; on any thread.
  void note_done();

 private:
  const size_t kernels_;
  const Clock::duration patience_;
  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;
  Clock::time_point said_ = start_;
  size_t done_ = 0;
};

}  // namespace tandem::native
