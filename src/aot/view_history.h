/// What autograd knows of views that a traced function made.
#pragma once

#include "aot/traced.h"
#include "aot/views.h"

namespace tandem {

/// Made under no_grad of a tensor that needs grad: it says that it needs grad as well, but none flows through
/// it.
bool is_untracked_view(const at::Tensor& output);

/// Eager refuses to write such a view once grad mode is on.
bool is_made_under_no_grad(const at::Tensor& output);

/// Whether it is the node of a write to a part of a tensor, or to what a view of it was.
bool writes_part(const torch::autograd::Node* node);

/// What autograd notes of a view that was made with grad mode on, before its base required grad: once its
/// base is written it has a history like any other.
std::optional<torch::autograd::CreationMeta> creation_with_grad_mode(const at::Tensor& output);

/// False for what a custom function returns, which may be its input and still have a gradient of its own.
bool autograd_sees_only_views(const at::Tensor& output, const at::Tensor& base, size_t steps);

/// libtorch gives a view a new history when its base was written after it was made: one node for all the
/// steps up to there. The steps as autograd sees them then.
std::optional<std::vector<ViewStep>> regenerated_steps(const Tracer& tracer,
                                                       const std::vector<ViewLink>& links,
                                                       const at::Tensor& output, const at::Tensor& base,
                                                       const std::vector<ViewStep>& steps);

/// Some operators that give lists of views are recorded as what they call for each view. The steps to an
/// output with a history, each by the operator that autograd knows.
std::vector<ViewStep> lists_as_called(const at::Tensor& output, std::vector<ViewStep> steps);

/// How an input got other sizes or strides, from `first` to `last`; throws RunEagerly where it got other
/// memory.
std::vector<ViewStep> metadata_steps(const Traced& traced, Value first, Value last);

}  // namespace tandem
