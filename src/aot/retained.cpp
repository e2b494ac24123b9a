#include "aot/retained.h"

#include <torch/csrc/autograd/variable.h>

#include "base/history.h"

namespace tandem {

void refuse_gradients_retained_inside(const Traced& traced, const Roles& roles, const VisiblePoints& cuts) {
  const auto& outputs = roles.outputs;
  auto refuse_where_reached = [&](const at::Tensor& retaining, std::optional<size_t> result) {
    if (cuts.count(torch::autograd::impl::gradient_edge(retaining))) return;
    Tensors others;
    for (size_t i = 0; i < outputs.size(); ++i) {
      // The caller's views of a tensor lead to the caller's tensor.
      const bool is_view_of_it =
          result && outputs[i].source == OutputSource::ViewOfOutput && outputs[i].base == *result;
      if (!is_view_of_it && traced.outputs[i].defined() && !traced.outputs[i].is_same(retaining))
        others.push_back(traced.outputs[i]);
    }
    for (const TracedInput& input : traced.tracer->inputs())
      if (!input.visible.is_same(retaining)) others.push_back(input.visible);
    const auto behind = nodes_behind(others);
    if (std::find(behind.begin(), behind.end(), retaining.grad_fn().get()) != behind.end())
      throw RunEagerly(
          "it retains the gradient of a tensor that it returns or writes and computes others from");
  };
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].retains_grad && outputs[i].source != OutputSource::Input)
      refuse_where_reached(traced.outputs[i], outputs[i].source == OutputSource::Fresh
                                                  ? std::optional(outputs[i].base)
                                                  : std::nullopt);
  for (size_t i = 0; i < traced.tracer->inputs().size(); ++i)
    if (roles.inputs[i].retains_grad && roles.inputs[i].write_recorded)
      refuse_where_reached(traced.tracer->inputs()[i].visible, std::nullopt);
}

}  // namespace tandem
