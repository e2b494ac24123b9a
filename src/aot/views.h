/// Which recorded tensors are views of which, and by what steps.
#pragma once

#include "aot/roles.h"

namespace tandem {

/// How one recorded value was made from another one on the same storage.
struct ViewLink {
  Value parent;  ///< none: the first value on its storage
  int32_t node = -1;
  size_t base_argument = 0;
  size_t result = 0;  ///< among the node's results, lists flattened
};

/// For every value of a recorded graph, the link to what it is a view of.
std::vector<ViewLink> find_views(const Graph& trace);

/// The functional operator that does what a mutable one does, without writing; cached. Nothing where libtorch
/// has none.
std::optional<c10::OperatorHandle> functional_twin(const c10::OperatorHandle& op);

/// The steps from `base` to `view`, or nothing when `view` was not made from `base` by view operators alone.
std::optional<std::vector<ViewStep>> view_steps(const Graph& trace, const std::vector<ViewLink>& links,
                                                Value base, Value view);

/// One step, as_strided, from a base to a view of this geometry.
ViewStep strided_step(const TensorMeta& base, const TensorMeta& view);

/// Whether the operator gives a list of views.
bool gives_list(const ViewStep& step);

/// Takes one step on a real tensor, in the grad mode of the caller. All that the operator gives, lists
/// flattened, of which the view is `step.result`.
std::vector<at::Tensor> replay_all(const ViewStep& step, const at::Tensor& base);
at::Tensor replay(const ViewStep& step, const at::Tensor& base);

}  // namespace tandem
