/// Noticing that a program sets the state of a random number generator.
#pragma once

#include <ATen/core/Generator.h>
#include <tandem/graph.h>

#include "trace/draw_log.h"

namespace tandem {

/// While one lives, the CPU's default generator carries a label of ours in place of its seed, which whoever
/// seeds it or puts a state back wipes off. The numbers that it gives, to other threads as well, stay what
/// they are. Those of several threads share the label: what one program sets, all that are traced then are
/// taken to set.
class SeedWatch {
 public:
  /// What it finds out about draws goes into `log`, which lives longer and may be that of an earlier one.
  SeedWatch(const Tensors& arguments, DrawLog& log);
  /// Takes the label off; generators that were set get the state of before.
  ~SeedWatch();
  SeedWatch(const SeedWatch&) = delete;

  /// Whether a generator is in another state than draws have left it in: one was seeded, or has not been put
  /// back.
  bool was_set();

  /// Asked before a draw: the label of the CPU's generator, live or of a state that the log knows; nothing
  /// where one was set otherwise.
  std::optional<uint64_t> label();
  /// The CPU's live generator is drawn from, in this state of the graph's.
  void drew(Value state);
  /// A state that was put back is drawn from, and this one follows.
  void drew_again(Value next);

 private:
  DrawLog& log_;
  at::Generator before_;  ///< the CPU's, as it was
  uint64_t sets_before_ = 0;
  at::Generator device_;  ///< of the arguments, where that is not the CPU
  uint64_t device_seed_ = 0, device_offset_ = 0;
};

}  // namespace tandem
