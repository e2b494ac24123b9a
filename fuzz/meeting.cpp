#include "fuzz/meeting.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <map>

namespace tandem::fuzz {

size_t sums_of_gradients(const Tensors& roots) {
  std::map<const torch::autograd::Node*, bool> met;
  std::vector<const torch::autograd::Node*> waiting;
  size_t sums = 0;
  auto arrive = [&](const torch::autograd::Edge& edge) {
    if (!edge.is_valid()) return;
    // Views of one operator that meet in its node are rebuilt one by one outside, where their gradients meet in a sum.
    const bool again = std::exchange(met[edge.function.get()], true);
    sums += again;
    if (!again) waiting.push_back(edge.function.get());
  };
  torch::autograd::edge_list held;           // nobody else holds the node of a leaf that is a root
  for (const at::Tensor& root : roots) held.push_back(torch::autograd::impl::gradient_edge(root));
  for (const torch::autograd::Edge& edge : held) arrive(edge);
  while (!waiting.empty()) {
    const torch::autograd::Node* node = waiting.back();
    waiting.pop_back();
    for (const torch::autograd::Edge& edge : node->next_edges()) arrive(edge);
  }
  return sums;
}

}  // namespace tandem::fuzz
