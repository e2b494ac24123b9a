/// Threads that a traced program starts: they record nothing.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace tandem {

/// While it lives, other threads may use the fakes of this tracer.
class OtherThreads {
 public:
  explicit OtherThreads(uint64_t tracer);
  OtherThreads(const OtherThreads&) = delete;
  ~OtherThreads();
  /// Whether one did: what was recorded is not what the program does.
  bool were_met() const;

 private:
  const uint64_t tracer_;
};

/// Makes a call on fakes in a thread that records nothing, with zeros in their place: the trace is dropped
/// whatever comes of it, and an exception would end the process there. False where no trace that the fakes
/// belong to goes on.
bool run_on_zeros(const c10::OperatorHandle& op, torch::jit::Stack& stack);

}  // namespace tandem
