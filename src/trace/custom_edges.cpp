#include "trace/custom_edges.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <unordered_map>
#include <unordered_set>

#include "base/history.h"
#include "trace/boundaries.h"

namespace tandem {
namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::Edge;
using GradNode = torch::autograd::Node;
using torch::autograd::impl::gradient_edge;

/// The nodes behind some tensors, as far as the trace goes.
struct History {
  std::vector<GradNode*> generated;  ///< libtorch's own
  std::vector<GradNode*> custom;     ///< all others that do not end there

  explicit History(const Tensors& ends) {
    for (const at::Tensor& end : ends)
      if (end.defined()) visit(end.grad_fn().get());
    while (!waiting_.empty()) {
      GradNode* node = waiting_.back();
      waiting_.pop_back();
      for (const Edge& edge : node->next_edges()) visit(edge.function.get());
    }
  }

 private:
  void visit(GradNode* node) {
    if (!node || !seen_.insert(node).second) return;
    if (is_generated(*node))
      generated.push_back(node);
    else if (dynamic_cast<AccumulateGrad*>(node) || is_boundary(*node))
      return;
    else
      custom.push_back(node);
    waiting_.push_back(node);
  }

  std::vector<GradNode*> waiting_;
  std::unordered_set<GradNode*> seen_;
};

/// Where edges of real tensors have to lead.
class FakeEnds {
 public:
  explicit FakeEnds(Tracer& tracer) : tracer_(tracer) {
    for (size_t i = 0; i < tracer.inputs().size(); ++i) {
      const at::Tensor& real = tracer.inputs()[i].real;
      if (real.defined() && !real.is_leaf()) computed_.emplace(real.grad_fn().get(), i);
    }
  }

  /// Nothing for the edge of a fake.
  std::optional<Edge> of(const Edge& edge) {
    if (auto* end = dynamic_cast<AccumulateGrad*>(edge.function.get()))
      return as_fake(end->variable) ? std::nullopt
                                    : std::optional(gradient_edge(tracer_.twin(end->variable)));
    auto [first, last] = computed_.equal_range(edge.function.get());
    for (; first != last; ++first)
      if (const TracedInput& input = tracer_.inputs()[first->second]; gradient_edge(input.real) == edge)
        return gradient_edge(input.visible);
    return std::nullopt;
  }

 private:
  Tracer& tracer_;
  /// inputs by the node that made the real tensor
  std::unordered_multimap<const GradNode*, size_t> computed_;
};

}  // namespace

void lead_to_fakes(Tracer& tracer, const Tensors& ends) {
  const History before(ends);
  if (!before.custom.empty() || std::any_of(before.generated.begin(), before.generated.end(),
                                            [](GradNode* node) { return has_hooks(*node); }))
    tracer.note_own_code();
  if (before.custom.empty()) return;
  FakeEnds fakes(tracer);
  for (GradNode* node : before.custom)
    for (size_t i = 0; i < node->num_outputs(); ++i)
      // set_next_edge is for nodes that nothing leads to yet; the new end lies as deep as the old one, so
      // what libtorch has counted stays true.
      if (auto fake = fakes.of(node->next_edge(i)))
        const_cast<torch::autograd::edge_list&>(node->next_edges())[i] = *fake;
  // libtorch's own nodes are made of fakes alone: one that leads to a real tensor was there before the trace.
  for (GradNode* node : History(ends).generated)
    for (const Edge& edge : node->next_edges())
      if (fakes.of(edge))
        throw RunEagerly(
            "a custom function is given a tensor that the function captured, computed from others");
  // The history that the fake has by now begins with the write.
  if (nodes_in_order(ends).size() < nodes_behind(ends).size())
    throw RunEagerly("a tensor that the function captured is given to a custom function and written later");
}

}  // namespace tandem
