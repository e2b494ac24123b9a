#include "base/history.h"

#include <unordered_set>

namespace tandem {

std::vector<torch::autograd::Node*> nodes_behind(const std::vector<at::Tensor>& tensors) {
  std::vector<torch::autograd::Node*> found;
  std::unordered_set<torch::autograd::Node*> seen;
  auto visit = [&](torch::autograd::Node* node) {
    if (node && seen.insert(node).second) found.push_back(node);
  };
  for (const at::Tensor& tensor : tensors)
    if (tensor.defined()) visit(tensor.grad_fn().get());
  for (size_t next = 0; next < found.size(); ++next)
    for (const auto& edge : found[next]->next_edges()) visit(edge.function.get());
  return found;
}

}  // namespace tandem
