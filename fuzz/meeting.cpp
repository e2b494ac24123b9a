#include "fuzz/meeting.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/tensor.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <map>
#include <set>

namespace tandem::fuzz {

size_t sums_of_gradients(const Tensors& roots) {
  std::map<const torch::autograd::Node*, bool> met;
  std::vector<const torch::autograd::Node*> waiting;
  size_t sums = 0;
  auto arrive = [&](const torch::autograd::Edge& edge) {
    if (!edge.is_valid()) return;
    // Views of one operator that meet in its node are rebuilt one by one outside, where their gradients meet
    // in a sum.
    const bool again = std::exchange(met[edge.function.get()], true);
    sums += again;
    if (!again) waiting.push_back(edge.function.get());
  };
  torch::autograd::edge_list held;  // nobody else holds the node of a leaf that is a root
  for (const at::Tensor& root : roots) held.push_back(torch::autograd::impl::gradient_edge(root));
  for (const torch::autograd::Edge& edge : held) arrive(edge);
  while (!waiting.empty()) {
    const torch::autograd::Node* node = waiting.back();
    waiting.pop_back();
    for (const torch::autograd::Edge& edge : node->next_edges()) arrive(edge);
  }
  return sums;
}

static bool any_node_behind(const Tensors& roots, const std::function<bool(torch::autograd::Node&)>& fits) {
  std::vector<torch::autograd::Node*> waiting;
  std::set<const torch::autograd::Node*> met;
  for (const at::Tensor& root : roots) waiting.push_back(root.grad_fn().get());
  while (!waiting.empty()) {
    torch::autograd::Node* node = waiting.back();
    waiting.pop_back();
    if (!node || !met.insert(node).second) continue;
    if (fits(*node)) return true;
    for (const torch::autograd::Edge& edge : node->next_edges()) waiting.push_back(edge.function.get());
  }
  return false;
}

bool writes_parts(const Tensors& roots) {
  return any_node_behind(roots, [](torch::autograd::Node& node) {
    return dynamic_cast<torch::autograd::CopySlices*>(&node) != nullptr;
  });
}

bool has_hooks(const Tensors& roots) {
  return any_node_behind(roots, [](torch::autograd::Node& node) { return !node.tensor_pre_hooks().empty(); });
}

bool was_reshaped_in_place(const at::Tensor& given) {
  const auto node = given.grad_fn();
  if (!node || given.is_view()) return false;
  const std::string name = node->name();
  const std::string_view kinds[] = {"TBackward", "Transpose", "Squeeze", "Unsqueeze", "Swap", "AsStrided"};
  return std::any_of(std::begin(kinds), std::end(kinds),
                     [&](std::string_view kind) { return name.starts_with(kind); });
}

}  // namespace tandem::fuzz
