/// Results that the caller gets one view of, and nothing else.
#pragma once

#include "aot/traced.h"

namespace tandem {

/// The view of `returned[result]` that is all the caller gets of it, where every element of the result is one
/// of the view's and gradients can be led from one to the other.
std::optional<SoleView> sole_view(const Traced& traced, const Plan& plan, size_t result);

/// A tangent of the result as one of the view; differentiable.
at::Tensor tangent_of_view(const SoleView& view, const at::Tensor& tangent);

}  // namespace tandem
