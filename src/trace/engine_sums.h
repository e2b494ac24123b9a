/// Sums that autograd's engine makes of what nodes gave, told from those of the nodes' own formulas.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

namespace tandem {

/// While it lives, it is known on this thread when a node computes.
class NotedFormulas {
 public:
  NotedFormulas();
  ~NotedFormulas();
  NotedFormulas(const NotedFormulas&) = delete;

 private:
  at::CallbackHandle handle_;
  int outer_;
};

/// Whether the engine makes the sum that is being recorded, and adds to `first`, a fake, in place, since
/// nobody else has it.
bool engine_adds_into(const at::Tensor& first);

}  // namespace tandem
