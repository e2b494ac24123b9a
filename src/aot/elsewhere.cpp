#include "aot/elsewhere.h"

#include <tandem/error.h>

#include "trace/branching.h"

namespace tandem {

using GradNode = torch::autograd::Node;

void redirect(GradNode& node, size_t edge, const torch::autograd::Edge& end) {
  // set_next_edge is for nodes that nothing leads to yet; what libtorch has counted of depths stays an upper
  // bound.
  auto lead = [&](GradNode& from) { const_cast<torch::autograd::edge_list&>(from.next_edges())[edge] = end; };
  lead(node);
  if (GradNode* inner = stands_for(node)) lead(*inner);
}

void end_at_border(const Elsewhere& elsewhere, const Tensors& gradients) {
  std::vector<GradNode*> waiting;
  std::unordered_set<const GradNode*> seen;
  auto visit = [&](GradNode* node) {
    if (!node || !seen.insert(node).second) return;
    const auto piece = elsewhere.piece_of->find(node);
    if (piece == elsewhere.piece_of->end()) waiting.push_back(node);
    // The history of the forward itself ends at the border already.
    else if (piece->second != elsewhere.piece && !elsewhere.inputs.count(node))
      throw UnsupportedError(
          "a gradient that is to be differentiated in turn reads a tensor of another part of the function, "
          "which its forward does not lead to");
  };
  for (const at::Tensor& gradient : gradients)
    if (gradient.defined()) visit(gradient.grad_fn().get());
  while (!waiting.empty()) {
    GradNode& node = *waiting.back();
    waiting.pop_back();
    for (size_t e = 0; e < node.num_outputs(); ++e) {
      if (auto end = elsewhere.ends.find(node.next_edge(e)); end != elsewhere.ends.end())
        redirect(node, e, end->second);
      else
        visit(node.next_edge(e).function.get());
    }
  }
}

}  // namespace tandem
