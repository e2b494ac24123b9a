#include "trace/boundaries.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include "base/history.h"
#include "trace/failure.h"

namespace tandem {
namespace {

using torch::autograd::edge_list;
using torch::autograd::variable_list;
using torch::autograd::impl::gradient_edge;

/// Lets gradients through: makes a non-leaf of a leaf, as the real tensor is one.
struct InputBoundary : torch::autograd::Node {
  using Node::Node;
  variable_list apply(variable_list&& gradients) override {
    return variable_list(num_outputs(), gradients[0]);
  }
  std::string name() const override { return "tandem::InputBoundary"; }
};

/// What leads out of the trace, while the program runs.
struct Exit : torch::autograd::Node {
  using Node::Node;
  void close() { next_edges_.clear(); }
};

struct CaptureEnd : Exit {
  using Exit::Exit;
  variable_list apply(variable_list&& gradients) override {
    if (!ends_here() && !gathers_here())
      refuse<RunEagerly>(
          "the function differentiates through what a tensor that it captured was computed from");
    return std::move(gradients);
  }
  std::string name() const override { return "tandem::CaptureEnd"; }

 private:
  /// backward() leaves the gradient in the real leaf, where the program finds it; the trace takes it from
  /// there.
  bool gathers_here() const {
    return dynamic_cast<torch::autograd::AccumulateGrad*>(next_edge(0).function.get()) != nullptr;
  }

  /// autograd::grad has a place for the result there, backward() has not; what lies behind the real tensor is
  /// not ours to differentiate.
  bool ends_here() const {
    const auto* executed = torch::autograd::get_current_graph_task_exec_info();
    if (!executed || executed->empty()) return false;
    auto next = executed->find(next_edge(0).function.get());
    return next != executed->end() && next->second.captures_ && !next->second.needed_;
  }
};

struct OutsideHistory : Exit {
  using Exit::Exit;
  variable_list apply(variable_list&&) override {
    refuse<RunEagerly>("a gradient inside the function goes through what an argument was computed from");
  }
  std::string name() const override { return "tandem::OutsideHistory"; }
};

}  // namespace

at::Tensor non_leaf_of(const at::Tensor& leaf, const NodePtr& beyond) {
  at::Tensor visible(leaf.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), true));
  edge_list edges = {gradient_edge(leaf)};
  if (beyond) edges.emplace_back(beyond, 0);
  auto boundary = make_node<InputBoundary>(std::move(edges));
  boundary->add_input_metadata(visible);
  torch::autograd::impl::set_gradient_edge(visible, {NodePtr(boundary), 0});
  return visible;
}

NodePtr end_at(const at::Tensor& leaf, const at::Tensor& real) {
  // Autograd puts a gradient into its leaf before it goes on.
  constexpr uint64_t before_all_others = std::numeric_limits<uint64_t>::max();
  edge_list edges{gradient_edge(real)};
  auto end = real.is_leaf() ? make_node<CaptureEnd>(before_all_others, std::move(edges))
                            : make_node<CaptureEnd>(std::move(edges));
  end->add_input_metadata(leaf);
  torch::autograd::impl::set_grad_accumulator(leaf, WeakNodePtr(end));
  return end;
}

NodePtr history_of(const at::Tensor& real, const std::vector<TracedInput>& inputs) {
  edge_list edges = {gradient_edge(real)};
  const auto nodes = nodes_behind({real});
  auto was_used = [&](const torch::autograd::Edge& wanted) {
    return std::any_of(nodes.begin(), nodes.end(), [&](auto* node) {
      return std::find(node->next_edges().begin(), node->next_edges().end(), wanted) !=
             node->next_edges().end();
    });
  };
  for (const TracedInput& input : inputs)
    if (input.real.requires_grad() && !input.real.is_same(real) && was_used(gradient_edge(input.real)))
      edges.push_back(gradient_edge(input.visible));
  auto history = make_node<OutsideHistory>(std::move(edges));
  history->add_input_metadata(real);
  return history;
}

bool is_boundary(const torch::autograd::Node& node) {
  return dynamic_cast<const InputBoundary*>(&node) || dynamic_cast<const Exit*>(&node);
}

void let_go(torch::autograd::Node& end) { static_cast<Exit&>(end).close(); }

}  // namespace tandem
