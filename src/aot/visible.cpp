#include "aot/visible.h"

#include <torch/csrc/autograd/variable.h>

#include "aot/views.h"

namespace tandem {
namespace {

using torch::autograd::impl::gradient_edge;

bool is_rebuilt(const OutputRole& role, const at::Tensor& output) {
  return !role.same_as && !role.steps.empty() && role.tracked && output.defined() && output.grad_fn();
}

/// The input that a result is written to, where autograd sees the write.
std::optional<size_t> input_written_with(const Roles& roles, size_t result) {
  for (size_t i = 0; i < roles.inputs.size(); ++i) {
    const InputRole& role = roles.inputs[i];
    if (role.data_written && !role.write_kept && role.write_recorded && role.returned == result) return i;
  }
  return std::nullopt;
}

/// Whether the caller has the result itself.
bool is_visible(const Traced& traced, const Roles& roles, size_t result) {
  const auto& outputs = roles.outputs;
  if (std::any_of(outputs.begin(), outputs.end(), [&](const OutputRole& role) {
        return role.source == OutputSource::Fresh && role.base == result;
      }))
    return true;
  const auto input = input_written_with(roles, result);
  return input && !traced.tracer->inputs()[*input].real.is_view();
}

/// Whether the caller has the result, or a view of it that has a history.
bool is_reached(const Traced& traced, const Roles& roles, size_t result) {
  for (size_t o = 0; o < roles.outputs.size(); ++o) {
    const OutputRole& role = roles.outputs[o];
    const bool is_of_result = role.source == OutputSource::Fresh || role.source == OutputSource::ViewOfOutput;
    if (is_of_result && role.base == result && traced.outputs[o].grad_fn()) return true;
  }
  return input_written_with(roles, result).has_value();
}

/// The node on the way from a view that leads to `end` itself.
const torch::autograd::Node* step_to(const torch::autograd::Edge& end, const at::Tensor& view) {
  NodePtr node = view.grad_fn();
  while (node && node->num_outputs() > 0 && node->next_edge(0) != end) node = node->next_edge(0).function;
  return node && node->num_outputs() > 0 ? node.get() : nullptr;
}

/// Where the caller has a source of tangents as views alone: the nodes that bring the gradients of these to
/// it.
std::unordered_set<const torch::autograd::Node*> views_alone_of(const Traced& traced, const Plan& plan,
                                                                size_t source) {
  std::unordered_set<const torch::autograd::Node*> steps;
  const size_t result = plan.differentiable[source];
  if (plan.sole_views[source] || is_visible(traced, plan.roles, result)) return steps;
  for (size_t o = 0; o < plan.roles.outputs.size(); ++o) {
    const OutputRole& role = plan.roles.outputs[o];
    if (role.source != OutputSource::ViewOfOutput || role.base != result ||
        !is_rebuilt(role, traced.outputs[o]))
      continue;
    if (const auto* step = step_to(gradient_edge(plan.returned[result]), traced.outputs[o]))
      steps.insert(step);
  }
  return steps;
}

/// Outputs that are views of results with a gradient, each behind those that it is a view of.
std::vector<size_t> rebuilt_views(const Traced& traced, const Plan& plan) {
  std::vector<size_t> views;
  const auto& outputs = plan.roles.outputs;
  for (size_t o = 0; o < outputs.size(); ++o)
    if (is_rebuilt(outputs[o], traced.outputs[o]) && outputs[o].source == OutputSource::ViewOfOutput &&
        source_of(plan, outputs[o].base))
      views.push_back(o);
  std::stable_sort(views.begin(), views.end(),
                   [&](size_t a, size_t b) { return outputs[a].steps.size() < outputs[b].steps.size(); });
  return views;
}

/// Whether the derivative is taken of this view.
bool is_sole(const Plan& plan, size_t output) {
  return plan.sole_views[*source_of(plan, plan.roles.outputs[output].base)].has_value();
}

/// The caller's view, what it is a view of on the way from the result, and other results of the operators
/// that made these: all that his history leads through.
void add_steps_to(const at::Tensor& view, size_t output, const std::vector<ViewStep>& steps,
                  VisiblePoints& points) {
  torch::autograd::Edge at = gradient_edge(view);
  auto add = [&](const torch::autograd::Edge& edge, size_t step, size_t result) {
    points.emplace(edge, PieceTarget{PieceTarget::Kind::Output, output, step, result});
  };
  for (size_t step = steps.size(); step-- > 0; at = at.function->next_edge(0)) {
    if (!gives_list(steps[step])) add(at, step, 0);
    for (uint32_t result = 0; gives_list(steps[step]) && result < at.function->num_inputs(); ++result)
      add({at.function, result}, step, result);
  }
}

}  // namespace

std::optional<size_t> source_of(const Plan& plan, size_t result) {
  const auto& results = plan.differentiable;
  const auto source = std::find(results.begin(), results.end(), result);
  return source == results.end() ? std::nullopt : std::optional(size_t(source - results.begin()));
}

Tensors roots_of(const Plan& plan) {
  Tensors roots = plan.tangent_sources;
  for (size_t s = 0; s < roots.size(); ++s)
    if (plan.sole_views[s]) roots[s] = plan.sole_views[s]->view;
  return roots;
}

Tensors reached_roots(const Traced& traced, const Plan& plan) {
  Tensors reached;
  const Tensors roots = roots_of(plan);
  for (size_t s = 0; s < roots.size(); ++s)
    if (s >= plan.differentiable.size() || is_reached(traced, plan.roles, plan.differentiable[s]))
      reached.push_back(roots[s]);
  return reached;
}

VisiblePoints visible_points(const Traced& traced, const Plan& plan) {
  VisiblePoints points;
  const Tensors roots = roots_of(plan);
  for (size_t s = 0; s < plan.differentiable.size(); ++s)
    if ((!plan.sole_views[s] && is_visible(traced, plan.roles, plan.differentiable[s])) ||
        views_alone_of(traced, plan, s).size() > 1)
      points.emplace(gradient_edge(roots[s]), PieceTarget{PieceTarget::Kind::Source, s});
  for (size_t o : rebuilt_views(traced, plan)) {
    const std::vector<ViewStep>& steps = plan.roles.outputs[o].steps;
    if (is_sole(plan, o))
      points.emplace(gradient_edge(traced.outputs[o]),
                     PieceTarget{PieceTarget::Kind::Output, o, steps.size() - 1});
    else
      add_steps_to(traced.outputs[o], o, steps, points);
  }
  return points;
}

const torch::autograd::Node* only_view_of(const Traced& traced, const Plan& plan, size_t source) {
  const auto steps = views_alone_of(traced, plan, source);
  return steps.size() == 1 ? *steps.begin() : nullptr;
}

}  // namespace tandem
