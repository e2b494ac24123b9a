// What the caller gets, and what it is made of.
#include <torch/csrc/autograd/variable.h>

#include "aot/planner.h"
#include "aot/view_history.h"
#include "base/history.h"
#include "graph/geometry.h"

namespace tandem {
namespace {

/// When a step is taken: the value that its call makes first, and the output that the call is made for. What
/// others get of the call comes right behind it: none that makes the value without a history lies between.
using Turn = std::pair<int32_t, size_t>;

struct TurnOfStep {
  Turn turn;
  OutputStep step;
};

/// Views of results that steps have been found to, by the nodes of their histories: what was one call of an
/// operator is one call again.
class ViewsOnTheWay {
 public:
  /// The step where it needs no call of its own; else that is noted.
  std::optional<TurnOfStep> find_or_add(const torch::autograd::Node& node, Value value, OutputStep step,
                                        const std::vector<ViewStep>& steps) {
    const auto [call, is_called_now] = turns_.try_emplace(&node, value.id, step.output);
    const auto [maker, is_new] = makers_.try_emplace({&node, value.id}, step.output);
    const bool is_last = step.step + 1 == steps.size(), is_one_of_many = gives_list(steps[step.step]);
    if (is_called_now || (is_new ? !is_one_of_many : is_last)) return std::nullopt;
    step.kind = is_new ? OutputStep::Kind::Sibling : OutputStep::Kind::Shared;
    if (!is_new) step.from = maker->second;
    return TurnOfStep{is_one_of_many ? call->second : Turn(value.id, maker->second), step};
  }

 private:
  std::map<const torch::autograd::Node*, Turn> turns_;  ///< of what each call made first
  std::map<std::pair<const torch::autograd::Node*, int32_t>, size_t> makers_;
};

}  // namespace

void Planner::group_outputs() {
  for (const at::Tensor& output : traced_.outputs) {
    if (!output.defined()) continue;
    auto& together = outputs_on_[storage_of(output)];
    if (std::none_of(together.begin(), together.end(),
                     [&](const at::Tensor& other) { return other.is_same(output); }))
      together.push_back(output);
  }
}

void Planner::plan_output(const at::Tensor& output) {
  OutputRole role;
  if (!output.defined()) {
    role.source = OutputSource::None;
    plan_.roles.outputs.push_back(std::move(role));
    return;
  }
  if (auto earlier = same_output(output)) {
    role = plan_.roles.outputs[*earlier];
    if (role.source == OutputSource::Fresh) role.source = OutputSource::ViewOfOutput;
    role.same_as = earlier;
    plan_.roles.outputs.push_back(std::move(role));
    return;
  }
  role.value = tracer_.value_of(output);
  role.requires_grad = output.requires_grad();
  role.retains_grad = output.retains_grad();
  if (on_inputs_.count(storage_of(output)))
    plan_view_of_input(output, role);
  else
    plan_own_output(output, role);
  plan_.roles.outputs.push_back(std::move(role));
}

std::optional<size_t> Planner::same_output(const at::Tensor& output) const {
  for (size_t i = 0; i < plan_.roles.outputs.size(); ++i)
    if (traced_.outputs[i].is_same(output)) return i;
  return std::nullopt;
}

std::vector<std::pair<at::Tensor, size_t>> Planner::visible_inputs() const {
  std::vector<std::pair<at::Tensor, size_t>> visible;
  for (size_t m = 0; m < traced_.members.size(); ++m)
    visible.emplace_back(traced_.members[m].fake, tracer_.inputs().size() + m);
  for (size_t i = 0; i < tracer_.inputs().size(); ++i) visible.emplace_back(tracer_.inputs()[i].visible, i);
  return visible;
}

void Planner::plan_view_of_input(const at::Tensor& output, OutputRole& role) {
  std::optional<OutputRole> of_its_own;
  for (const auto& [base, index] : visible_inputs()) {
    if (storage_of(base) != storage_of(output)) continue;
    role.base = index;
    if (output.is_same(base)) {
      role.source = OutputSource::Input;
      return;
    }
    auto steps = view_steps(trace_, links_, tracer_.value_of(base), role.value);
    if (!steps) continue;
    if (output.requires_grad() && output.is_leaf() && !base.requires_grad())
      throw RunEagerly("the function returns a leaf that it makes");
    role.source = OutputSource::ViewOfInput;
    role.steps = std::move(*steps);
    if (plan_view(output, base, role)) return;
    if (!of_its_own) of_its_own = role;
  }
  if (!of_its_own) throw RunEagerly("an output is a view of an input that no view operator made");
  // Eager writes what a custom function returned neither; other views of inputs it does, and their bases get
  // a history of it.
  if (auto node = output.grad_fn(); is_generated(*node) || writes_part(node.get()))
    throw RunEagerly("an output is a view of an input and has a history of its own");
  role = std::move(*of_its_own);
  role.tracked = false;
  role.differentiable = true;
  later_sources_.push_back(output);
}

bool Planner::plan_view(const at::Tensor& output, const at::Tensor& base, OutputRole& role) {
  if (output.requires_grad() && !base.requires_grad())
    throw RunEagerly("an output requires grad although what it is a view of does not");
  const bool has_history = output.grad_fn() != nullptr;
  role.tracked = has_history || (!base.requires_grad() && !is_made_under_no_grad(output));
  if (!role.tracked) role.made_as = creation_with_grad_mode(output);
  if (auto steps = regenerated_steps(tracer_, links_, output, base, role.steps))
    role.steps = std::move(*steps);
  else if (has_history)
    return autograd_sees_only_views(output, base, role.steps.size());
  else if (output.requires_grad() && torch::autograd::impl::get_autograd_meta(output)->requires_grad_)
    throw RunEagerly("the function returns a leaf that it makes");
  else if (output.requires_grad() &&
           std::any_of(role.steps.begin(), role.steps.end(),
                       [](const ViewStep& step) { return step.op.schema().name() == "aten::detach"; }))
    throw RunEagerly("an output requires grad, was made under no_grad, and is a view of a detached tensor");
  return true;
}

void Planner::plan_own_output(const at::Tensor& output, OutputRole& role) {
  if (output.requires_grad() && output.is_leaf() && !is_untracked_view(output))
    throw RunEagerly("the function returns a leaf that it makes");
  if (output.is_view() && output._base().requires_grad() && output._base().is_leaf())
    throw RunEagerly("the function returns a view of a leaf that it makes");
  if (output.is_view() && output.grad_fn() && !output._base().requires_grad())
    throw RunEagerly("the function returns a view of a tensor that it detached in place");
  const at::Tensor base = base_on(storage_of(output));
  role.base = returned(base);
  note_versions(role.base);
  role.source = output.is_same(base) ? OutputSource::Fresh : OutputSource::ViewOfOutput;
  if (role.source == OutputSource::Fresh) return;
  auto steps = view_steps(trace_, links_, tracer_.value_of(base), role.value);
  if (!steps) throw RunEagerly("outputs share memory in a way that no view operator made");
  role.steps = std::move(*steps);
  if (!plan_view(output, base, role))
    throw RunEagerly("outputs that share memory have gradients of their own");
  if (output.grad_fn()) role.steps = lists_as_called(output, std::move(role.steps));
}

const at::Tensor& Planner::base_on(int32_t storage) {
  auto [found, fresh] = bases_on_.try_emplace(storage);
  if (!fresh) return found->second;
  const std::vector<at::Tensor>& together = outputs_on_[storage];
  const at::Tensor& first = together.front();
  if (first.is_view() && are_views_of(at::Tensor(first._base()), together))
    found->second = first._base();
  else
    found->second = together.size() > 1        ? base_of(together)
                    : is_untracked_view(first) ? base_of({first, at::Tensor(first._base())})
                                               : first;
  return found->second;
}

bool Planner::are_views_of(const at::Tensor& base, const std::vector<at::Tensor>& together) {
  return as_fake(base) && std::all_of(together.begin(), together.end(), [&](const at::Tensor& output) {
           if (output.is_same(base)) return true;
           auto steps = view_steps(trace_, links_, tracer_.value_of(base), tracer_.value_of(output));
           if (!steps) return false;
           OutputRole role;
           role.steps = std::move(*steps);
           try {
             return plan_view(output, base, role);
           } catch (const RunEagerly&) {
             return false;
           }
         });
}

at::Tensor Planner::base_of(const std::vector<at::Tensor>& together) {
  auto is_base = [&](const at::Tensor& candidate) {
    return std::all_of(together.begin(), together.end(), [&](const at::Tensor& other) {
      return candidate.is_same(other) ||
             view_steps(trace_, links_, tracer_.value_of(candidate), tracer_.value_of(other));
    });
  };
  for (const at::Tensor& candidate : together)
    if (!is_untracked_view(candidate) && !holds_elements_twice(candidate) && is_base(candidate))
      return candidate;
  for (const at::Tensor& candidate : together) {
    if (!candidate.is_view()) continue;
    at::Tensor base(candidate._base());
    if (as_fake(base) && is_base(base)) return base;
  }
  throw RunEagerly("outputs share memory with each other but not with a tensor that both are views of");
}

void Planner::order_output_steps() {
  std::vector<TurnOfStep> made;
  std::vector<Turn> turns;  // of the last step to each output
  ViewsOnTheWay on_the_way;
  const auto& outputs = plan_.roles.outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Value value = outputs[i].value;
    const size_t before = made.size(), steps = outputs[i].same_as ? 0 : outputs[i].steps.size();
    if (steps == 0)
      made.push_back({outputs[i].same_as ? turns[*outputs[i].same_as] : Turn(value.id, i), {i, 0}});
    const bool has_history = outputs[i].source == OutputSource::ViewOfOutput && traced_.outputs[i].grad_fn();
    const torch::autograd::Node* node = has_history ? traced_.outputs[i].grad_fn().get() : nullptr;
    std::optional<size_t> from;
    for (size_t step = steps; step-- > 0 && !from;) {
      std::optional<TurnOfStep> done;
      if (node) done = on_the_way.find_or_add(*node, value, {i, step}, outputs[i].steps);
      if (done) made.push_back(*done);
      if (done) break;
      const Value parent = links_[size_t(value.id)].parent;
      if (node) node = node->next_edge(0).function.get();
      if (step > 0) from = view_between(i, parent, step, node);
      made.push_back({{value.id, i}, {i, step, from}});
      value = parent;
    }
    turns.push_back(made[before].turn);
  }
  std::stable_sort(made.begin(), made.end(), [](const auto& a, const auto& b) { return a.turn < b.turn; });
  for (const TurnOfStep& turn : made) plan_.output_steps.push_back(turn.step);
}

std::optional<size_t> Planner::view_between(size_t output, Value parent, size_t steps,
                                            const torch::autograd::Node* node) const {
  const auto& outputs = plan_.roles.outputs;
  const OutputRole& view = outputs[output];
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputRole& role = outputs[i];
    const bool is_alike = role.source == view.source && role.base == view.base && role.tracked &&
                          view.tracked && !role.differentiable && !view.differentiable;
    // A view has another history than it had when its memory was written.
    const bool has_history = !node || traced_.outputs[i].grad_fn().get() == node;
    if (role.value == parent && is_alike && !role.same_as && role.steps.size() == steps && has_history)
      return i;
  }
  return std::nullopt;
}

void Planner::note_versions(size_t result) {
  const uint32_t version = version_of(plan_.returned[result]);
  auto& noted = plan_.written_results;
  if (version > 0 &&
      std::none_of(noted.begin(), noted.end(), [&](const auto& other) { return other.first == result; }))
    noted.emplace_back(result, version);
}

size_t Planner::returned(const at::Tensor& fake) {
  for (size_t i = 0; i < plan_.returned.size(); ++i)
    if (plan_.returned[i].is_same(fake)) return i;
  plan_.returned.push_back(fake);
  return plan_.returned.size() - 1;
}

}  // namespace tandem
