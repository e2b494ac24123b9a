#include "fuzz/state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/utils.h>

#include <map>

namespace tandem::fuzz {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct State {
  std::map<int64_t, at::Tensor> slots;
  std::vector<at::Tensor> history;
};

State& state() {
  thread_local State kept;
  return kept;
}

bool fits(const at::Tensor& held, const at::Tensor& x) {
  return held.defined() && held.sizes() == x.sizes() && held.scalar_type() == x.scalar_type();
}

struct Product : Function<Product> {
  static at::Tensor forward(AutogradContext* context, at::Tensor x, at::Tensor y) {
    context->save_for_backward({x, y});
    return x * y;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    auto like = [](const at::Tensor& gradient, const at::Tensor& input) {
      return at::sum_to(gradient, input.sizes()).to(input.scalar_type());
    };
    return {like(gradients[0] * saved[1], saved[0]), like(gradients[0] * saved[0], saved[1])};
  }
};

struct Scaled : Function<Scaled> {
  static at::Tensor forward(AutogradContext* context, at::Tensor x, int64_t factor) {
    context->saved_data["factor"] = at::full_like(x.detach(), double(factor));
    return x * factor;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gradients[0] * context->saved_data["factor"].toTensor(), at::Tensor()};
  }
};

bool holds_gradients(const at::Tensor& x) { return x.is_leaf() && x.requires_grad(); }

}  // namespace

void forget_state() { state() = {}; }

at::Tensor carry(int64_t slot, const at::Tensor& x) {
  at::Tensor& held = state().slots[slot];
  at::Tensor sum = fits(held, x) ? x + held : x * 1;
  held = sum.detach();
  return sum;
}

at::Tensor add_noise_made_once(int64_t slot, const at::Tensor& x) {
  at::Tensor& held = state().slots[slot + 100];
  if (!fits(held, x)) held = at::rand_like(x.detach());
  return x + held;
}

at::Tensor add_length_of_history(const at::Tensor& x) {
  state().history.push_back(x.detach());
  return x + double(state().history.size());
}

at::Tensor add_noise_of_seed(int64_t seed, const at::Tensor& x) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor before = generator.get_state();
  torch::manual_seed(uint64_t(seed));
  const at::Tensor noise = at::rand_like(x.detach());
  generator.set_state(before);
  return x + noise;
}

at::Tensor multiply_noise_twice(const at::Tensor& x) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor before = generator.get_state(), once = x * at::rand_like(x.detach());
  generator.set_state(before);
  return once * at::rand_like(x.detach());
}

at::Tensor add_gradient(const at::Tensor& x) {
  return holds_gradients(x) && x.grad().defined() ? x + x.grad() : x * 1;
}

void set_gradient(const at::Tensor& x) {
  if (holds_gradients(x)) x.mutable_grad() = at::ones_like(x.detach());
}

void clear_gradient(const at::Tensor& x) {
  if (holds_gradients(x)) x.mutable_grad() = at::Tensor();
}

at::Tensor hooked(int64_t factor, const at::Tensor& x) {
  at::Tensor y = x * 1;
  if (y.requires_grad()) y.register_hook([factor](const at::Tensor& gradient) { return gradient * factor; });
  return y;
}

at::Tensor custom_product(const at::Tensor& x, const at::Tensor& y) { return Product::apply(x, y); }
at::Tensor custom_scaled(int64_t factor, const at::Tensor& x) { return Scaled::apply(x, factor); }

}  // namespace tandem::fuzz
