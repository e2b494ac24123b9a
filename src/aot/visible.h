/// Which places of a traced history the caller can name.
#pragma once

#include "aot/pieces.h"

namespace tandem {

/// What a caller's tensor leads to on the fakes, and where gradients for it go at a call. A `Source` is a
/// place in `Plan::tangent_sources` here.
using VisiblePoints = std::unordered_map<torch::autograd::Edge, PieceTarget>;

/// The place of a result among `Plan::tangent_sources`; nothing where it has no gradient.
std::optional<size_t> source_of(const Plan& plan, size_t result);

/// Where tangents arrive in the history.
Tensors roots_of(const Plan& plan);

/// Those of them that the caller can give a tangent: not where all that he has of a result is views made
/// under no_grad.
Tensors reached_roots(const Traced& traced, const Plan& plan);

/// Outputs, and inputs that the function writes, where the caller's tensor has the history that the program
/// gave it. An input that is a view when it is written, and views of inputs, are left out: their gradients
/// are added up on the caller's side, in another order than eager's. A result that the caller has as several
/// views is such a place too: their gradients are added up on his side, and those from inside before them. So
/// is what his view is a view of, on the way from the result to it.
VisiblePoints visible_points(const Traced& traced, const Plan& plan);

/// Where the caller has a source of tangents as one view alone, which the derivative is not taken of: the
/// node that brings its gradient to the source. Null elsewhere.
const torch::autograd::Node* only_view_of(const Traced& traced, const Plan& plan, size_t source);

}  // namespace tandem
