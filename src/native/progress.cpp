#include "native/progress.h"

#include <cstdio>
#include <string>

#include "base/log.h"

namespace tandem::native {
namespace {

std::string in_seconds(Progress::Clock::duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(time).count());
  return text;
}

}  // namespace

void Progress::note_done() {
  const std::lock_guard lock(mutex_);
  ++done_;
  const Clock::time_point now = Clock::now();
  const bool ends_what_was_said = done_ == kernels_ && said_ != start_;
  if (now - said_ < patience_ && !ends_what_was_said) return;
  said_ = now;
  say("compiling: " + std::to_string(done_) + " of " + std::to_string(kernels_) + " kernels are done after " +
      in_seconds(now - start_));
}

}  // namespace tandem::native
