/// The autograd graph behind tensors, as we look at it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/flat_hash_map.h>
#include <torch/csrc/autograd/function.h>

#include <vector>

namespace tandem {

/// Every node that a backward of these tensors could reach, each once; they live as long as the tensors'
/// graph does.
std::vector<torch::autograd::Node*> nodes_behind(const std::vector<at::Tensor>& tensors);

/// The same, and the place of each.
struct NumberedNodes {
  std::vector<torch::autograd::Node*> nodes;
  ska::flat_hash_map<const torch::autograd::Node*, size_t> numbers;
};
NumberedNodes numbered_nodes_behind(const std::vector<at::Tensor>& tensors);

/// The same in the order in which autograd goes through them: each node before those that it leads to, and of
/// those that could come next the one that was made last.
std::vector<torch::autograd::Node*> nodes_in_order(const std::vector<at::Tensor>& tensors);

/// Whether a node is libtorch's own, made by one of its operators, and no custom function's.
bool is_generated(const torch::autograd::Node& node);

/// Whether code of the user's runs with a node: a custom function's, or hooks.
bool runs_own_code(torch::autograd::Node& node);

/// Whether somebody registered code that runs with the node: before it, behind it, or when it has added to a
/// gradient.
bool has_hooks(torch::autograd::Node& node);
/// Whether one of those behind the tensors has.
bool have_hooks_behind(const std::vector<at::Tensor>& tensors);

}  // namespace tandem
