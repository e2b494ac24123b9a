#include "aot/captures.h"

namespace tandem {
namespace {

void refuse_effects_on(const TracedInput& input, const Tracer& tracer, bool is_replayed) {
  if (!is_replayed && input.real.requires_grad() &&
      (!input.visible.requires_grad() || input.visible.is_leaf() != input.real.is_leaf()))
    throw RunEagerly("the function detaches an input in place");
  // of what is no leaf any more, asking the tensor itself warns
  const at::Tensor& gradient = input.leaf.unsafeGetTensorImpl()->grad();
  if (!gradient.defined()) return;
  if (input.captured || !input.real.is_leaf() || !gradient.is_same(input.real.grad()))
    throw RunEagerly("the function calls backward() on an input");
  if (tracer.has_met(gradient)) throw RunEagerly("the function reads the gradient of an argument");
}

/// Whether a leaf had to be told again.
bool put_back(const at::Tensor& tensor, bool requires_grad) {
  if (!tensor.is_leaf() || tensor.requires_grad() == requires_grad) return false;
  tensor.set_requires_grad(requires_grad);
  return true;
}

}  // namespace

BasesOfArguments::BasesOfArguments(const Tensors& arguments) {
  for (const at::Tensor& argument : arguments)
    if (argument.defined() && argument.is_view() && argument._base().is_leaf())
      kept_.emplace_back(argument._base(), argument._base().requires_grad());
}

bool BasesOfArguments::restore() const {
  bool changed = false;
  for (const auto& [base, requires_grad] : kept_) changed = put_back(base, requires_grad) || changed;
  return changed;
}

void take_gradients(Traced& traced) {
  for (const at::Tensor& leaf : traced.tracer->leaves_with_other_gradients()) traced.tracer->twin(leaf);
  for (const TracedInput& input : traced.tracer->inputs()) {
    if (!input.captured || !input.real.defined() || !input.real.is_leaf()) continue;
    at::Tensor& gradient = input.real.mutable_grad();
    if (gradient.is_same(input.grad) || (gradient.defined() && !as_fake(gradient))) continue;
    TracedGradient& taken = traced.gradients.emplace_back(input.value);
    if (gradient.defined()) {
      taken.output = traced.outputs.size();
      traced.outputs.push_back(gradient);
    }
    gradient = input.grad;
  }
}

std::string give_back_captures(const Tracer& tracer, const BasesOfArguments& bases) {
  std::string changed;
  // A view requires grad with its base, which the trace met later or not at all: who met it first knows best.
  const std::vector<TracedInput>& inputs = tracer.inputs();
  for (auto met = inputs.rbegin(); met != inputs.rend(); ++met) {
    const TracedInput& input = *met;
    if (!input.captured || !input.real.defined()) continue;
    if (input.real.is_view() && put_back(at::Tensor(input.real._base()), input.base_required_grad))
      changed = "requires_grad";
    if (!input.real.is_leaf()) continue;
    if (put_back(input.real, input.required_grad)) changed = "requires_grad";
    if (!input.real.grad().is_same(input.grad)) {
      input.real.mutable_grad() = input.grad;
      changed = "the gradient";
    }
  }
  if (bases.restore()) changed = "requires_grad";
  return tracer.restore_gradients() ? "the gradient" : changed;
}

/// Views of a captured tensor require grad with it, so all captures are given back before anything is looked
/// at.
void refuse_unseen_effects(const Tracer& tracer, const BasesOfArguments& bases, bool is_replayed) {
  if (std::string changed = give_back_captures(tracer, bases); !changed.empty())
    throw RunEagerly("the function changes " + changed + " of a tensor that it captured");
  for (const TracedInput& input : tracer.inputs()) refuse_effects_on(input, tracer, is_replayed);
}

void refuse_views_that_start_to_require_grad(const Tracer& tracer) {
  for (const TracedInput& input : tracer.inputs())
    if (!input.required_grad && input.visible.requires_grad() && input.visible.is_leaf() &&
        input.real.is_view())
      throw RunEagerly("an input that is a view of another tensor starts to require grad");
}

}  // namespace tandem
