/// What lies beyond the border of a piece, as derivatives of higher order see it.
#pragma once

#include "trace/tracer.h"

#include <unordered_map>
#include <unordered_set>

namespace tandem {

/// A saved tensor that another piece made leads there by its own history, wherever it is used again. So does
/// a result of its own that the caller has, to the caller's: what comes to it in several orders is added up.
struct Elsewhere {
  /// Where such an edge has to end instead.
  std::unordered_map<torch::autograd::Edge, torch::autograd::Edge> ends;
  /// The pieces of all nodes, and which of these is this one.
  std::shared_ptr<const std::unordered_map<const torch::autograd::Node*, size_t>> piece_of;
  size_t piece;
  /// Ends of inputs that belong to other pieces; this one leads there as well.
  std::unordered_set<const torch::autograd::Node*> inputs;
};

/// Ends the histories of `gradients` at the border of their piece; throws UnsupportedError where one goes on
/// elsewhere.
void end_at_border(const Elsewhere& elsewhere, const Tensors& gradients);

/// Puts `end` into the place of an edge, also in nodes that a node stands for.
void redirect(torch::autograd::Node& node, size_t edge, const torch::autograd::Edge& end);

}  // namespace tandem
