/// A checkpoint as users write one: its backward draws the forward's random numbers again.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

namespace tandem::test {

inline at::Tensor state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

inline void set_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

inline at::Tensor part(const at::Tensor& x) {
  return torch::dropout(x.sin(), 0.5, true).exp() * torch::dropout(x, 0.3, true);
}

/// Saves its input and the state of the generator; its backward computes the rest again.
template <at::Tensor (*fn)(const at::Tensor&)>
struct Checkpoint : torch::autograd::Function<Checkpoint<fn>> {
  using Context = torch::autograd::AutogradContext;
  static at::Tensor forward(Context* context, at::Tensor x) {
    context->save_for_backward({x});
    context->saved_data["state"] = state();
    return fn(x);
  }
  static torch::autograd::variable_list backward(Context* context, torch::autograd::variable_list gradients) {
    at::AutoGradMode grad_mode(true);
    const at::Tensor now = state(), x = context->get_saved_variables()[0].detach().requires_grad_();
    set_state(context->saved_data["state"].toTensor());
    const at::Tensor y = fn(x);
    set_state(now);
    return torch::autograd::grad({y}, {x}, {gradients[0]});
  }
};

}  // namespace tandem::test
