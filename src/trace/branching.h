/// Derivatives of which libtorch's own formula looks at data and goes one of a few ways: all ways are
/// recorded, and compiled code takes the results of the one that its data take.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <vector>

namespace tandem {

/// The operators whose formulas we know to be such.
const std::vector<const char*>& branching_operators();

/// Puts a node that goes every way into the place of libtorch's, which made `result` just now; whether there
/// was one.
bool branch(const at::Tensor& result);

/// Libtorch's node in the place of which this one was put; null for others.
torch::autograd::Node* stands_for(torch::autograd::Node& node);

}  // namespace tandem
