#include "aot/sole_view.h"

#include <ATen/ops/reshape.h>

#include "aot/views.h"
#include "graph/geometry.h"
#include "ops/facts.h"

namespace tandem {
namespace {

constexpr size_t sizes_argument = 1;

bool keeps_elements(const ViewStep& step) {
  return facts(step.op).sets_sizes || facts(step.op).moves_dimensions;
}

}  // namespace

std::optional<SoleView> sole_view(const Traced& traced, const Plan& plan, size_t result) {
  std::optional<size_t> only;
  const auto& outputs = plan.roles.outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool is_of_result =
        outputs[i].source == OutputSource::Fresh || outputs[i].source == OutputSource::ViewOfOutput;
    if (!is_of_result || outputs[i].base != result || outputs[i].same_as) continue;
    if (only) return std::nullopt;
    only = i;
  }
  if (!only || outputs[*only].source != OutputSource::ViewOfOutput ||
      traced.outputs[*only].grad_fn() == nullptr)
    return std::nullopt;
  const at::Tensor& view = traced.outputs[*only];
  const std::vector<ViewStep>& steps = outputs[*only].steps;
  if (!std::all_of(steps.begin(), steps.end(), keeps_elements)) return std::nullopt;
  if (view.numel() != plan.returned[result].numel() ||
      !is_surely_injective(traced.tracer->graph().meta(traced.tracer->value_of(view))))
    return std::nullopt;
  return SoleView{view, steps};
}

at::Tensor tangent_of_view(const SoleView& view, const at::Tensor& tangent) {
  at::Tensor seen = tangent;
  for (const ViewStep& step : view.steps)
    // A tangent lies otherwise in memory than what the view was recorded for, and may need a copy.
    seen = facts(step.op).sets_sizes
               ? at::reshape(seen, std::get<c10::IValue>(step.arguments[sizes_argument]).toIntVector())
               : replay(step, seen);
  return seen;
}

}  // namespace tandem
