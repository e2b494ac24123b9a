/// Noticing that a program sets the state of a random number generator.
#pragma once

#include <ATen/core/Generator.h>
#include <tandem/graph.h>

namespace tandem {

/// While one lives, the CPU's default generator carries a label of ours in place of its seed, which whoever seeds it or puts a state back wipes off. The numbers that it gives, to
/// other threads as well, stay what they are. Those of several threads share the label: what one program sets, all that are traced then are taken to set.
class SeedWatch {
 public:
  explicit SeedWatch(const Tensors& arguments);
  /// Takes the label off; generators that were set get the state of before.
  ~SeedWatch();
  SeedWatch(const SeedWatch&) = delete;

  /// Whether a generator was set since this one began to watch.
  bool was_set();

 private:
  at::Generator before_;                     ///< the CPU's, as it was
  uint64_t sets_before_ = 0;
  at::Generator device_;                     ///< of the arguments, where that is not the CPU
  uint64_t device_seed_ = 0, device_offset_ = 0;
};

}  // namespace tandem
