#include "base/history.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <cctype>
#include <queue>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>

namespace tandem {

std::vector<torch::autograd::Node*> nodes_behind(const std::vector<at::Tensor>& tensors) {
  return numbered_nodes_behind(tensors).nodes;
}

NumberedNodes numbered_nodes_behind(const std::vector<at::Tensor>& tensors) {
  NumberedNodes found;
  auto visit = [&](torch::autograd::Node* node) {
    if (node && found.numbers.emplace(node, found.nodes.size()).second) found.nodes.push_back(node);
  };
  for (const at::Tensor& tensor : tensors)
    if (tensor.defined()) visit(tensor.grad_fn().get());
  for (size_t next = 0; next < found.nodes.size(); ++next)
    for (const auto& edge : found.nodes[next]->next_edges()) visit(edge.function.get());
  return found;
}

std::vector<torch::autograd::Node*> nodes_in_order(const std::vector<at::Tensor>& tensors) {
  using Node = torch::autograd::Node;
  const std::vector<Node*> nodes = nodes_behind(tensors);
  std::unordered_map<const Node*, size_t> waiting;
  for (const Node* node : nodes)
    for (const auto& edge : node->next_edges())
      if (edge.function) ++waiting[edge.function.get()];
  auto comes_later = [](const Node* a, const Node* b) { return a->sequence_nr() < b->sequence_nr(); };
  std::priority_queue<Node*, std::vector<Node*>, decltype(comes_later)> ready(comes_later);
  for (Node* node : nodes)
    if (!waiting.count(node)) ready.push(node);
  std::vector<Node*> ordered;
  while (!ready.empty()) {
    ordered.push_back(ready.top());
    ready.pop();
    for (const auto& edge : ordered.back()->next_edges())
      if (edge.function && --waiting[edge.function.get()] == 0) ready.push(edge.function.get());
  }
  return ordered;
}

namespace {

bool looks_generated(const torch::autograd::Node& node) {
  if (dynamic_cast<const torch::autograd::TraceableFunction*>(&node)) return true;
  if (dynamic_cast<const torch::autograd::AccumulateGrad*>(&node)) return false;
  // The nodes of views are called after their operators as well: SelectBackward0.
  const std::string name = node.name();
  const std::string_view suffix = "Backward", text = name;
  const size_t at = text.rfind(suffix);
  auto all = [](std::string_view part, auto&& kind) {
    return std::all_of(part.begin(), part.end(), [&](unsigned char c) { return kind(c) != 0; });
  };
  return at != text.npos && at > 0 && std::isupper(static_cast<unsigned char>(text[0])) &&
         at + suffix.size() < text.size() &&
         all(
             text.substr(0, at), [](int c) { return std::isalpha(c); }) &&
         all(text.substr(at + suffix.size()), [](int c) { return std::isdigit(c); });
}

}  // namespace

bool is_generated(const torch::autograd::Node& node) {
  // libtorch's classes stay as long as we do, so those found once need not be asked for their names again.
  thread_local std::unordered_set<const std::type_info*> known;
  const std::type_info* type = &typeid(node);
  if (known.count(type)) return true;
  if (!looks_generated(node)) return false;
  known.insert(type);
  return true;
}

bool runs_own_code(torch::autograd::Node& node) {
  if (has_hooks(node)) return true;
  if (is_generated(node)) return false;
  // What libtorch writes by hand is called after its class; so is what it makes of a custom function.
  const std::string name = node.name();
  return !name.starts_with("torch::autograd::") || name.starts_with("torch::autograd::CppNode");
}

bool has_hooks(torch::autograd::Node& node) {
  return !node.tensor_pre_hooks().empty() || !node.pre_hooks().empty() || !node.post_hooks().empty() ||
         node.tensor_post_acc_grad_hooks();
}

bool have_hooks_behind(const std::vector<at::Tensor>& tensors) {
  const auto nodes = nodes_behind(tensors);
  return std::any_of(nodes.begin(), nodes.end(), [](auto* node) { return has_hooks(*node); });
}

}  // namespace tandem
