// What the compiled forward returns, and how the caller's tensors and outputs are made of it.
#include "aot/planner.h"
#include "aot/sole_view.h"

namespace tandem {

Planner::Planner(const Traced& traced, const std::vector<std::string>& names, bool keep)
    : traced_(traced),
      tracer_(*traced.tracer),
      trace_(tracer_.graph()),
      names_(names),
      keep_(keep),
      links_(find_views(trace_)) {}

Plan Planner::run() {
  find_written_storages();
  for (const TracedInput& input : tracer_.inputs()) plan_input(input);
  find_overlapping_writes();
  for (const TracedMember& member : traced_.members) plan_member(member);
  group_outputs();
  for (const at::Tensor& output : traced_.outputs) plan_output(output);
  order_output_steps();
  find_differentiable();
  plan_.gradients = traced_.gradients;
  return std::move(plan_);
}

void Planner::find_differentiable() {
  for (size_t i = 0; i < plan_.returned.size(); ++i) {
    if (!plan_.returned[i].requires_grad() || is_untouched_leaf(i)) continue;
    plan_.differentiable.push_back(i);
    plan_.tangent_sources.push_back(plan_.returned[i]);
    plan_.sole_views.push_back(sole_view(traced_, plan_, i));
  }
  // The run time makes outputs in the order in which the program made them, and each gets the next tangent.
  std::stable_sort(later_sources_.begin(), later_sources_.end(),
                   [this](const at::Tensor& a, const at::Tensor& b) {
                     return tracer_.value_of(a).id < tracer_.value_of(b).id;
                   });
  for (const at::Tensor& source : later_sources_) plan_.tangent_sources.push_back(source);
  plan_.sole_views.resize(plan_.tangent_sources.size());
  if (!plan_.tangent_sources.empty() && plan_.gradient_inputs.empty())
    throw RunEagerly("an output requires grad although no input does");
  for (const at::Tensor& source : plan_.tangent_sources)
    plan_.roles.tangents.push_back(tracer_.value_of(source));
}

bool Planner::is_untouched_leaf(size_t returned) const {
  for (const InputRole& role : plan_.roles.inputs)
    if (role.data_written && !role.write_kept && role.returned == returned) return !role.write_recorded;
  return false;
}

Plan plan_calls(const Traced& traced, const std::vector<std::string>& input_names,
                bool keep_input_mutations) {
  try {
    return Planner(traced, input_names, keep_input_mutations).run();
  } catch (const c10::Error& error) {
    // Asking a view for its history is an error where its base was written in a way that autograd forbids; in
    // eager nobody may ever ask.
    throw RunEagerly(std::string("libtorch refuses the gradients of a tensor that it returns: ") +
                     error.what_without_backtrace());
  }
}

}  // namespace tandem
