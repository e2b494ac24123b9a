/// What a trace did to real tensors, besides operators: seen afterwards, put back, and refused.
#pragma once

#include "aot/traced.h"

namespace tandem {

/// Whether what arguments are views of requires grad, as it is now: a capture may be changed before it is
/// met.
class BasesOfArguments {
 public:
  explicit BasesOfArguments(const Tensors& arguments);
  /// Whether one had to be put back.
  bool restore() const;

 private:
  std::vector<std::pair<at::Tensor, bool>> kept_;
};

/// Captured leaves have the gradients again that they had; what the program put there goes out of the trace
/// as one more output.
void take_gradients(Traced& traced);

/// Captured tensors are again as they were before the program asked them to require grad or set their
/// gradients. Says which, or nothing when it did neither.
std::string give_back_captures(const Tracer& tracer, const BasesOfArguments& bases);

/// What a program does to its inputs besides operators is left to eager; of a record that is run in its
/// place, what that does not do.
void refuse_unseen_effects(const Tracer& tracer, const BasesOfArguments& bases, bool is_replayed);

/// A view that starts to require grad has a base that does not, which its fake knows nothing of.
void refuse_views_that_start_to_require_grad(const Tracer& tracer);

}  // namespace tandem
