#include "aot/view_history.h"

#include <torch/csrc/autograd/functions/tensor.h>
#include <torch/csrc/autograd/variable.h>

#include <tandem/build.h>

#include "base/history.h"
#include "ops/facts.h"

namespace tandem {

bool is_untracked_view(const at::Tensor& output) {
  return output.is_view() && output.requires_grad() && output.grad_fn() == nullptr &&
         as_fake(at::Tensor(output._base())) && output._base().requires_grad();
}

bool is_made_under_no_grad(const at::Tensor& output) {
  const auto* view = torch::autograd::impl::get_view_autograd_meta(output);
  return view && view->has_bw_view() &&
         view->get_creation_meta() == torch::autograd::CreationMeta::NO_GRAD_MODE;
}

bool writes_part(const torch::autograd::Node* node) {
  return dynamic_cast<const torch::autograd::CopySlices*>(node) != nullptr;
}

std::optional<torch::autograd::CreationMeta> creation_with_grad_mode(const at::Tensor& output) {
  using torch::autograd::CreationMeta;
  const auto* view = torch::autograd::impl::get_view_autograd_meta(output);
  if (!view || !view->has_bw_view()) return std::nullopt;
  const CreationMeta creation = view->get_creation_meta();
  return creation == CreationMeta::DEFAULT || creation == CreationMeta::MULTI_OUTPUT_NODE
             ? std::optional(creation)
             : std::nullopt;
}

bool autograd_sees_only_views(const at::Tensor& output, const at::Tensor& base, size_t steps) {
  auto edge = torch::autograd::impl::gradient_edge(output);
  for (size_t i = 0; i < steps; ++i) {
    if (!edge.function || edge.function->num_outputs() != 1 || !is_generated(*edge.function)) return false;
    edge = edge.function->next_edge(0);
  }
  return edge == torch::autograd::impl::gradient_edge(base);
}

std::optional<std::vector<ViewStep>> regenerated_steps(const Tracer& tracer,
                                                       const std::vector<ViewLink>& links,
                                                       const at::Tensor& output, const at::Tensor& base,
                                                       const std::vector<ViewStep>& steps) {
  const Graph& trace = tracer.graph();
  const auto end = torch::autograd::impl::gradient_edge(base);
  Value view = tracer.value_of(output);
  auto node = output.grad_fn();
  for (size_t left = steps.size(); node && left > 0; --left) {
    if (node->name() == "AsStridedBackward0" && node->next_edge(0) == end) {
      std::vector<ViewStep> seen = {strided_step(trace.meta(tracer.value_of(base)), trace.meta(view))};
      seen.insert(seen.end(), steps.begin() + int64_t(left), steps.end());
      return seen;
    }
    if (node->num_outputs() != 1 || !is_generated(*node)) break;
    node = node->next_edge(0).function;
    view = links[size_t(view.id)].parent;
    if (!view) break;
  }
  return std::nullopt;
}

std::vector<ViewStep> lists_as_called(const at::Tensor& output, std::vector<ViewStep> steps) {
  static const c10::OperatorHandle select = find_op("aten::select.int"), unbind = find_op("aten::unbind.int");
  auto edge = torch::autograd::impl::gradient_edge(output);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step, edge = edge.function->next_edge(0))
    if (step->op == select && edge.function->name() == "UnbindBackward0")
      *step = {unbind, {Value{}, step->arguments[1]}, 0, edge.input_nr};
  return steps;
}

std::vector<ViewStep> metadata_steps(const Traced& traced, Value first, Value last) {
  std::vector<ViewStep> steps;
  Value at = first;
  for (size_t n = 0; n < traced.forward_nodes; ++n) {
    const Node& node = traced.tracer->graph().nodes()[n];
    if (node.writes.size() != 1 || node.writes[0].first != at || !facts(node.op).changes_metadata) continue;
    if (!functional_twin(node.op))
      throw RunEagerly(full_name(node.op) + " replaces or resizes the memory of an input");
    steps.push_back({node.op, node.arguments, 0, 0});
    steps.back().arguments[0] = Value{};
    at = node.writes[0].second;
  }
  if (at != last) throw RunEagerly("an input is given other memory");
  return steps;
}

}  // namespace tandem
