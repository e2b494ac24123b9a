#include "trace/reentrant.h"

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/utils/grad_layout_contract.h>
#include <torch/csrc/autograd/variable.h>

#include <unordered_map>
#include <unordered_set>

#include "base/history.h"
#include "base/host.h"
#include "graph/vocabulary.h"
#include "trace/boundaries.h"

namespace tandem {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::variable_list;
using torch::autograd::impl::gradient_edge;
using GradNode = torch::autograd::Node;

/// What libtorch leaves in a leaf that had no gradient.
at::Tensor as_gathered(const at::Tensor& gradient, const at::Tensor& leaf) {
  if (as_fake(gradient) && as_fake(gradient)->zero)
    throw RunEagerly("a reentrant checkpoint has a gradient of zeros without memory");
  return torch::autograd::utils::obeys_layout_contract(gradient, leaf)
             ? gradient
             : torch::autograd::utils::clone_obey_contract(gradient, leaf);
}

/// Eager's backward goes on there.
[[noreturn]] void refuse_history() {
  throw RunEagerly(
      "the function in a reentrant checkpoint reads a tensor with a history that is not its argument");
}

class Reentrant final : public GradNode {
 public:
  Reentrant(GradNode& node, edge_list edges, size_t arguments, std::vector<Value> leaves, HostCheckpoint host)
      : Node(node.sequence_nr(), std::move(edges)),
        hosts_(node.getptr()),
        arguments_(arguments),
        leaves_(std::move(leaves)),
        host_(std::move(host)) {
    for (uint32_t i = 0; i < node.num_inputs(); ++i) {
      const auto& known = node.input_metadata(i);
      add_input_metadata(known.options(), known.shape_as_dim_vector(), known.is_tensor_subclass(),
                         known.is_nested_tensor(), known.grad_dtype());
    }
  }

  variable_list apply(variable_list&& gradients) override {
    if (c10::GradMode::is_enabled()) throw UnsupportedError("it goes through a reentrant checkpoint");
    for (uint32_t i = 0; i < num_inputs(); ++i)
      if (!gradients[i].defined()) gradients[i] = input_metadata(i).zeros_like();
    Tensors saved = host_.saved();
    for (at::Tensor& argument : saved)
      if (!as_fake(argument)) argument = tracer().twin(argument);
    const uint64_t first_node = at::sequence_number::peek();
    const HostCheckpoint::Again again = host_.call_again(saved, gradients);
    Tensors leaves = again.inputs;
    for (Value leaf : leaves_) leaves.push_back(visible(leaf));
    refuse_other_histories(again.outputs, leaves, first_node);
    return gradients_of(again, leaves);
  }

  std::string name() const override { return "tandem::Reentrant"; }
  size_t arguments() const { return arguments_; }

 private:
  static Tracer& tracer() {
    if (!Tracer::current()) throw Error("a reentrant checkpoint is differentiated outside of its trace");
    return *Tracer::current();
  }

  static const at::Tensor& visible(Value value) {
    for (const TracedInput& input : tracer().inputs())
      if (input.value == value) return input.visible;
    throw RunEagerly("a reentrant checkpoint reads a tensor that is gone");
  }

  static void refuse_other_histories(const Tensors& outputs, const Tensors& leaves, uint64_t first_node) {
    std::unordered_set<const GradNode*> seen;
    for (const at::Tensor& leaf : leaves)
      if (leaf.requires_grad()) seen.insert(gradient_edge(leaf).function.get());
    std::vector<const GradNode*> waiting;
    auto visit = [&](const Edge& edge) {
      const GradNode* node = edge.function.get();
      if (!node || !seen.insert(node).second) return;
      if (node->sequence_nr() < first_node || is_boundary(*node) ||
          dynamic_cast<const torch::autograd::AccumulateGrad*>(node))
        refuse_history();
      waiting.push_back(node);
    };
    for (const at::Tensor& output : outputs) visit(gradient_edge(output));
    while (!waiting.empty()) {
      const GradNode* node = waiting.back();
      waiting.pop_back();
      for (const Edge& edge : node->next_edges()) visit(edge);
    }
  }

  variable_list gradients_of(const HostCheckpoint::Again& again, const Tensors& leaves) const {
    Tensors wanted;
    for (const at::Tensor& leaf : leaves)
      if (leaf.requires_grad()) wanted.push_back(leaf);
    const Tensors found =
        torch::autograd::grad(again.outputs, wanted, again.gradients, /*retain_graph=*/false,
                              /*create_graph=*/false, /*allow_unused=*/true);
    variable_list all;
    auto next = found.begin();
    for (const at::Tensor& leaf : leaves) {
      at::Tensor gradient = leaf.requires_grad() ? *next++ : at::Tensor();
      all.push_back(gradient.defined() ? as_gathered(gradient, leaf) : gradient);
    }
    return all;
  }

  const NodePtr hosts_;  ///< which has saved the arguments
  const size_t arguments_;
  const std::vector<Value> leaves_;
  const HostCheckpoint host_;
};

class TakingOver {
 public:
  TakingOver(Tracer& tracer, const Tensors& ends) : tracer_(tracer), ends_(ends) {}

  void run() {
    for (GradNode* node : nodes_behind(ends_)) {
      if (is_generated(*node)) continue;
      if (auto host = checkpoint_in_host()(*node)) take_over(*node, std::move(*host));
    }
    if (taken_.empty()) return;
    for (GradNode* node : nodes_behind(ends_)) redirect(*node);
    for (auto& [node, ours] : taken_) redirect(*ours);
    for (const at::Tensor& end : ends_) redirect(end);
    refuse_shared_leaves();
    tracer_.note_called_again();
  }

 private:
  void take_over(GradNode& node, HostCheckpoint host) {
    for (Edge& edge : const_cast<edge_list&>(node.next_edges()))
      if (const auto* end = dynamic_cast<torch::autograd::AccumulateGrad*>(edge.function.get());
          end && !as_fake(end->variable))
        edge = gradient_edge(tracer_.twin(end->variable));
    edge_list edges = node.next_edges();
    for (uint32_t i = 0; i < node.num_inputs(); ++i)
      if (node.input_metadata(i).was_default_constructed())
        throw RunEagerly("a reentrant checkpoint returns something that has no gradient");
    const size_t arguments = edges.size();
    std::vector<Value> leaves;
    for (const TracedInput& input : read_in(node)) {
      const Edge end = gradient_edge(input.visible);
      if (std::find(edges.begin(), edges.end(), end) != edges.end()) continue;
      if (!input.real.is_leaf()) refuse_history();
      edges.push_back(end);
      leaves_.insert(end.function.get());
      leaves.push_back(input.value);
    }
    tracer_.note_saving(node.sequence_nr());
    taken_.emplace(
        &node, make_node<Reentrant>(node, std::move(edges), arguments, std::move(leaves), std::move(host)));
  }

  /// The inputs with a gradient that the function has read, or what came right behind it: it is called under
  /// no_grad, where autograd makes no nodes.
  std::vector<TracedInput> read_in(const GradNode& node) const {
    std::unordered_set<int32_t> read;
    const auto& nodes = tracer_.graph().nodes();
    for (size_t n = tracer_.recorded_before(node.sequence_nr());
         n < tracer_.recorded_before(node.sequence_nr() + 1); ++n)
      for_each_argument(nodes[n], [&](Value value) { read.insert(value.id); });
    std::vector<TracedInput> found;
    for (const TracedInput& input : tracer_.inputs())
      if (input.visible.requires_grad() && read.contains(input.value.id)) found.push_back(input);
    return found;
  }

  void redirect(GradNode& node) const {
    for (Edge& edge : const_cast<edge_list&>(node.next_edges()))
      if (auto taken = taken_.find(edge.function.get()); taken != taken_.end()) edge.function = taken->second;
  }

  void redirect(const at::Tensor& end) const {
    const auto taken = end.defined() ? taken_.find(end.grad_fn().get()) : taken_.end();
    if (taken == taken_.end()) return;
    if (end.is_view()) throw RunEagerly("a reentrant checkpoint returns a view");
    torch::autograd::impl::set_gradient_edge(end, {taken->second, uint32_t(end.output_nr())});
  }

  /// Eager adds what each checkpoint finds to what the leaf has by then, and at last what others find.
  void refuse_shared_leaves() const {
    std::unordered_set<const GradNode*> met;
    for (const GradNode* node : nodes_behind(ends_))
      for (const Edge& edge : node->next_edges())
        if (leaves_.contains(edge.function.get()) && !met.insert(edge.function.get()).second)
          throw RunEagerly(
              "a tensor that the function in a reentrant checkpoint reads is read elsewhere too");
  }

  Tracer& tracer_;
  const Tensors& ends_;
  std::unordered_map<const GradNode*, NodePtr> taken_;
  std::unordered_set<const GradNode*> leaves_;
};

}  // namespace

void take_over_reentrant(Tracer& tracer, const Tensors& ends) {
  if (checkpoint_in_host()) TakingOver(tracer, ends).run();
}

std::optional<size_t> arguments_of_reentrant(const GradNode& node) {
  const auto* reentrant = dynamic_cast<const Reentrant*>(&node);
  return reentrant ? std::optional(reentrant->arguments()) : std::nullopt;
}

}  // namespace tandem
