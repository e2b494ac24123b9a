/// Where autograd's graph over fakes ends, and what lies beyond while the program runs.
#pragma once

#include "trace/tracer.h"

namespace tandem {

/// A fake that is no leaf, as the real tensor is none: gradients go through it to `leaf`. `beyond` is the
/// real tensor's history, or nothing.
at::Tensor non_leaf_of(const at::Tensor& leaf, const NodePtr& beyond);

/// Ends the gradients of a captured tensor's fake, and leads on to the real tensor: `autograd::grad` inside
/// the program asks for the tensor that it knows.
NodePtr end_at(const at::Tensor& leaf, const at::Tensor& real);

/// Stands for what an argument was computed from, those of the inputs among it whose `visible` is made
/// already; a gradient that goes through it throws RunEagerly.
NodePtr history_of(const at::Tensor& real, const std::vector<TracedInput>& inputs);

/// Whether the node is one of these.
bool is_boundary(const torch::autograd::Node& node);

/// The program has ended: gradients end here from now on.
void let_go(torch::autograd::Node& end);

}  // namespace tandem
