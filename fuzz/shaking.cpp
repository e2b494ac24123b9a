#include "fuzz/shaking.h"

#include "base/history.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ExpandUtils.h>
#include <torch/csrc/autograd/function_hook.h>

#include <limits>

namespace tandem::fuzz {

using torch::autograd::variable_list;

namespace {

constexpr double last_bit = std::numeric_limits<double>::epsilon();

/// A custom function may give its integers a gradient too, which is as integral as they are.
bool is_rounded(const at::Tensor& gradient) { return gradient.defined() && gradient.is_floating_point(); }

}  // namespace

struct Shake : torch::autograd::FunctionPostHook {
  Shake(std::shared_ptr<Shaking> shaking, torch::autograd::Node& node)
      : shaking(std::move(shaking)), node(node) {}

  variable_list operator()(const variable_list& passed_on, const variable_list& arrived) override {
    variable_list shaken = shaking->in_parts(node, arrived, passed_on);
    for (at::Tensor& gradient : shaken) {
      if (!is_rounded(gradient)) continue;
      const at::Tensor bits = at::empty(gradient.sizes(), gradient.options());
      gradient = gradient * (1 + bits.uniform_(-1, 1, shaking->numbers_) * last_bit);
    }
    shaking->note_terms(node, shaken);
    return shaken;
  }

  const std::shared_ptr<Shaking> shaking;
  torch::autograd::Node& node;
};

Shaking::Shaking(uint64_t seed) : numbers_(at::detail::createCPUGenerator(seed)) {}

void Shaking::shake(const Tensors& roots) {
  terms_.clear();
  for (torch::autograd::Node* node : nodes_behind(roots)) {
    const auto& hooks = node->post_hooks();
    if (std::none_of(hooks.begin(), hooks.end(),
                     [](const auto& hook) { return dynamic_cast<Shake*>(hook.get()) != nullptr; }))
      node->add_post_hook(std::make_unique<Shake>(shared_from_this(), *node));
  }
}

/// A custom function need not be linear.
variable_list Shaking::in_parts(torch::autograd::Node& node, const variable_list& arrived,
                                const variable_list& passed_on) {
  variable_list first(arrived.size()), second(arrived.size());
  bool is_sum = false;
  for (size_t i = 0; i < arrived.size(); ++i) {
    const at::Tensor part = is_rounded(arrived[i]) ? part_of(arrived[i], {&node, uint32_t(i)}) : at::Tensor();
    is_sum = is_sum || part.defined();
    first[i] = part.defined() || !arrived[i].defined() ? part : at::zeros_like(arrived[i]);
    if (arrived[i].defined()) second[i] = part.defined() ? arrived[i] - part : arrived[i];
  }
  if (!is_sum || !is_generated(node)) return passed_on;
  variable_list sum = node(std::move(first));
  const variable_list rest = node(std::move(second));
  for (size_t i = 0; i < sum.size(); ++i) {
    if (rest[i].defined()) sum[i] = sum[i].defined() ? sum[i] + rest[i] : rest[i];
    // The engine has reduced what is handed to hooks to the size of what it is a gradient of.
    if (sum[i].defined() && passed_on[i].defined()) sum[i] = at::sum_to(sum[i], passed_on[i].sizes());
  }
  return sum;
}

/// Nothing of what is no sum, or one of terms that do not cancel each other.
at::Tensor Shaking::part_of(const at::Tensor& gradient, const Slot& slot) {
  const auto terms = terms_.find(slot);
  if (terms == terms_.end() || terms->second.sizes() != gradient.sizes()) return {};
  at::Tensor share, cancelled;
  {
    const at::NoGradGuard no_grad;
    cancelled = (terms->second - gradient.abs()) / 2;
    cancelled = at::where(cancelled > 4 * last_bit * terms->second, cancelled, 0).nan_to_num(0, 0, 0);
    terms_.erase(terms);
    if (!cancelled.any().item<bool>()) return {};
    share = at::empty(gradient.sizes(), gradient.options()).uniform_(0, 1, numbers_);
    cancelled = at::where(at::empty(gradient.sizes(), gradient.options()).uniform_(0, 1, numbers_) < 0.5,
                          cancelled, -cancelled);
  }
  return at::where(at::isfinite(gradient), gradient * share + cancelled, 0);
}

void Shaking::note_terms(const torch::autograd::Node& node, const variable_list& passed_on) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < passed_on.size() && i < node.num_outputs(); ++i) {
    const auto& edge = node.next_edge(i);
    if (!passed_on[i].defined() || !edge.function) continue;
    at::Tensor& terms = terms_[{edge.function.get(), edge.input_nr}];
    terms = terms.defined() ? terms + passed_on[i].abs() : passed_on[i].abs();
  }
}

}  // namespace tandem::fuzz
