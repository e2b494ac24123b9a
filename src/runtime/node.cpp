#include "runtime/node.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

namespace tandem {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

/// The graph knows plain strided tensors without lazy bits.
at::Tensor plain(at::Tensor gradient) {
  if (!gradient.defined()) return gradient;
  if (gradient.layout() != at::kStrided) gradient = gradient.to_dense();
  if (gradient.is_conj()) gradient = gradient.resolve_conj();
  if (gradient.is_neg()) gradient = gradient.resolve_neg();
  return gradient;
}

std::optional<TensorMeta> tangent_meta(const at::Tensor& gradient) {
  if (!gradient.defined()) return std::nullopt;
  TensorMeta meta;
  meta.dtype = gradient.scalar_type();
  meta.device = gradient.device();
  meta.sizes.assign(gradient.sizes().begin(), gradient.sizes().end());
  meta.strides.assign(gradient.strides().begin(), gradient.strides().end());
  return meta;
}

class CompiledNode final : public torch::autograd::Node {
 public:
  CompiledNode(std::shared_ptr<Entry> entry, torch::autograd::edge_list&& edges) : Node(std::move(edges)), entry_(std::move(entry)) {}

  void save(const Tensors& saved, const Tensors& results) {
    saved_.reserve(saved.size());
    for (const at::Tensor& tensor : saved) {
      bool is_output = std::any_of(results.begin(), results.end(), [&](const at::Tensor& result) { return result.is_same(tensor); });
      saved_.emplace_back(tensor, is_output && tensor.grad_fn().get() == this);
    }
  }

  variable_list apply(variable_list&& gradients) override {
    if (c10::GradMode::is_enabled())
      throw UnsupportedError("a gradient of a gradient cannot be taken through a compiled function (create_graph); take the first gradient inside the "
                             "compiled function instead");
    if (std::none_of(gradients.begin(), gradients.end(), [](const at::Tensor& g) { return g.defined(); })) return variable_list(num_outputs());
    for (at::Tensor& gradient : gradients) gradient = plain(std::move(gradient));
    const BackwardCode& code = entry_->backward(variant(gradients));
    Tensors inputs = unpack(code);
    for (at::Tensor& gradient : gradients)
      if (gradient.defined()) inputs.push_back(std::move(gradient));
    c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    Tensors results = code.code->run(std::move(inputs));
    variable_list out(num_outputs());
    for (size_t i = 0; i < code.gradients.size(); ++i)
      if (code.gradients[i] >= 0) out[i] = results[size_t(code.gradients[i])];
    return out;
  }

  void release_variables() override {
    std::lock_guard lock(mutex_);
    for (SavedVariable& saved : saved_) saved.reset_data();
  }

  std::string name() const override { return "tandem::CompiledBackward"; }

 private:
  BackwardVariant variant(const variable_list& gradients) const {
    BackwardVariant variant;
    variant.tangents.reserve(gradients.size());
    for (const at::Tensor& gradient : gradients) variant.tangents.push_back(tangent_meta(gradient));
    for (size_t i = 0; i < num_outputs(); ++i) variant.wanted.push_back(task_should_compute_output(i));
    return variant;
  }

  /// When this is the last backward through the node, each value dies at its last use inside the compiled code, as in eager.
  Tensors unpack(const BackwardCode& code) {
    std::lock_guard lock(mutex_);
    Tensors inputs;
    inputs.reserve(code.saved.size() + code.variant.tangents.size());
    for (size_t i : code.saved) inputs.push_back(saved_[i].unpack(getptr()));
    if (!torch::autograd::get_current_graph_task_keep_graph()) {
      for (SavedVariable& saved : saved_) saved.reset_data();
    }
    return inputs;
  }

  std::shared_ptr<Entry> entry_;
  std::vector<SavedVariable> saved_;
};

}  // namespace

void attach_compiled_node(RunningCall& call) {
  const Entry& entry = *call.entry;
  torch::autograd::edge_list edges;
  edges.reserve(entry.plan.gradient_inputs.size());
  for (size_t i : entry.plan.gradient_inputs) edges.push_back(torch::autograd::impl::gradient_edge(call.inputs[i]));
  auto node = make_node<CompiledNode>(call.entry, std::move(edges));
  for (size_t i : entry.plan.differentiable) torch::autograd::set_history(call.results[i], node);
  call.node = node;
}

void save_values(RunningCall& call) {
  for (const Entry::SharedVersion& shared : call.entry->shared_versions) {
    const at::Tensor& owner = shared.of_input ? call.inputs[shared.owner] : call.results[shared.owner];
    at::Tensor& saved = call.saved[shared.saved];
    if (!saved.is_same(owner) && !owner.is_inference()) torch::autograd::impl::set_version_counter(saved, torch::autograd::impl::version_counter(owner));
  }
  static_cast<CompiledNode&>(*call.node).save(call.saved, call.results);
  call.saved.clear();
}

}  // namespace tandem
