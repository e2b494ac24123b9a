#include "runtime/node.h"

#include "base/host.h"
#include "runtime/batched.h"
#include "runtime/nan_source.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/anomaly_mode.h>
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

/// Whether a tangent requires grad counts only where the gradients are differentiated in turn.
std::optional<TensorMeta> tangent_meta(const at::Tensor& gradient) {
  if (!gradient.defined()) return std::nullopt;
  TensorMeta meta;
  meta.dtype = gradient.scalar_type();
  meta.device = gradient.device();
  meta.sizes.assign(gradient.sizes().begin(), gradient.sizes().end());
  meta.strides.assign(gradient.strides().begin(), gradient.strides().end());
  meta.requires_grad = gradient.requires_grad() && c10::GradMode::is_enabled();
  return meta;
}

Tensors run_without_autocast(Executable& code, Tensors&& inputs, size_t expected) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  Tensors results = code.run(std::move(inputs));
  if (results.size() != expected)
    throw Error("the compiled backward returned " + std::to_string(results.size()) + " tensors instead of " + std::to_string(expected));
  return results;
}

/// In anomaly mode the engine reports NaN that a node returns; of a node that is a whole graph the reader wants to know more.
class NanReport {
 public:
  explicit NanReport(const Tensors& inputs) {
    if (torch::autograd::AnomalyMode::is_enabled() && torch::autograd::AnomalyMode::should_check_nan()) inputs_ = inputs;
  }

  void check(const variable_list& gradients, const Graph& graph, const std::string& node) const {
    if (!inputs_) return;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined() || !at::isnan(gradients[i]).any().item<bool>()) continue;
      // What came in from outside the engine reports by itself.
      const std::string source = source_of_nan(graph, *inputs_);
      TORCH_CHECK(source.empty(), "Function '", node, "' returned nan values in its ", i, "th output. They come from ", source);
      return;
    }
  }

 private:
  std::optional<Tensors> inputs_;
};

variable_list pick(const Tensors& results, const std::vector<int64_t>& positions, size_t count) {
  variable_list picked(count);
  for (size_t i = 0; i < positions.size(); ++i)
    if (positions[i] >= 0) picked[i] = results[size_t(positions[i])];
  return picked;
}

void share_versions(const Derivative& derivative, const Tensors& inputs, const Tensors& results, Tensors& saved) {
  for (const Derivative::SharedVersion& shared : derivative.shared_versions) {
    const at::Tensor& owner = shared.of_input ? inputs[shared.owner] : results[shared.owner];
    at::Tensor& value = saved[shared.saved];
    if (!value.is_same(owner) && !owner.is_inference()) torch::autograd::impl::set_version_counter(value, torch::autograd::impl::version_counter(owner));
  }
}

/// Inputs that only derivatives of higher order may lead to: the engine must not come there before.
using UnusedEdges = std::vector<std::pair<size_t, torch::autograd::Edge>>;

class CompiledNode final : public torch::autograd::Node {
 public:
  CompiledNode(std::shared_ptr<Entry> entry, Derivative& derivative, torch::autograd::edge_list&& edges, UnusedEdges unused = {})
      : Node(std::move(edges)), entry_(std::move(entry)), derivative_(derivative), unused_(std::move(unused)) {}

  void save(const Tensors& saved, const Tensors& results) {
    saved_.reserve(saved.size());
    for (const at::Tensor& tensor : saved) {
      bool is_output = std::any_of(results.begin(), results.end(), [&](const at::Tensor& result) { return result.is_same(tensor); });
      saved_.emplace_back(tensor, is_output && tensor.grad_fn().get() == this);
    }
  }

  variable_list apply(variable_list&& gradients) override {
    if (std::none_of(gradients.begin(), gradients.end(), [](const at::Tensor& g) { return g.defined(); })) return variable_list(num_outputs());
    try {
      return run_rows(std::move(gradients), !torch::autograd::get_current_graph_task_keep_graph());
    } catch (const Error& error) {
      if (raise_in_host()) raise_in_host()(error);
      throw;
    }
  }

  /// What a backward has read is gone already; what others of the call's outputs need stays, as it does in eager where they have nodes of their own.
  void release_variables() override {}

  std::string name() const override { return "tandem::CompiledBackward"; }

 private:
  /// Compiled code knows nothing of the dimensions that a vmap hides: it runs once for each of the backwards that the vmap stands for.
  variable_list run_rows(variable_list&& gradients, bool is_last) {
    if (auto batch = HiddenBatch::of(gradients)) {
      if (batch->size() == 0) throw UnsupportedError("a compiled backward was given a batch of no gradients (is_grads_batched, vectorize=True)");
      std::vector<Tensors> rows;
      for (int64_t i = 0; i < batch->size(); ++i) rows.push_back(run_rows(batch->row(gradients, i), is_last && i + 1 == batch->size()));
      return batch->join(rows);
    }
    for (at::Tensor& gradient : gradients) gradient = plain(std::move(gradient));
    return c10::GradMode::is_enabled() ? run_differentiably(std::move(gradients), is_last) : run(std::move(gradients), is_last);
  }

  variable_list run(variable_list&& gradients, bool is_last) {
    const BackwardVariant asked = variant(gradients);
    refuse_second(asked);
    const BackwardCode& code = derivative_.backward(asked);
    Tensors inputs = unpack(code.saved, gradients.size());
    if (is_last) give_up(asked, code.saved, &code.given_up);
    for (at::Tensor& gradient : gradients)
      if (gradient.defined()) inputs.push_back(std::move(gradient));
    const NanReport report(inputs);
    variable_list found = pick(run_without_autocast(*code.code, std::move(inputs), code.graph.outputs().size()), code.gradients, num_outputs());
    report.check(found, code.graph, name());
    return found;
  }

  /// Under create_graph: the gradients get a node like this one, of the next order.
  variable_list run_differentiably(variable_list&& gradients, bool is_last) {
    const BackwardVariant asked = variant(gradients);
    refuse_second(asked);
    Derivative& next = derivative_.next(asked);
    Tensors inputs = unpack(next.record().taken, gradients.size());
    if (is_last) give_up(asked, next.record().taken);
    torch::autograd::edge_list edges = next_edges();
    for (const auto& [input, edge] : unused_) edges[input] = edge;
    for (const at::Tensor& gradient : gradients) {
      if (!gradient.defined()) continue;
      inputs.push_back(gradient);
      if (gradient.requires_grad()) edges.push_back(torch::autograd::impl::gradient_edge(gradient));
    }
    Tensors results = run_without_autocast(*next.forward, Tensors(inputs), next.record().returned + next.saved_count());
    Tensors saved(std::make_move_iterator(results.begin() + int64_t(next.record().returned)), std::make_move_iterator(results.end()));
    results.resize(next.record().returned);
    if (!next.record().differentiable.empty()) {
      auto node = make_node<CompiledNode>(entry_, next, std::move(edges));
      for (size_t i : next.record().differentiable) torch::autograd::set_history(results[i], node);
      share_versions(next, inputs, results, saved);
      node->save(saved, results);
    }
    variable_list found = pick(results, next.record().gradients, num_outputs());
    NanReport(inputs).check(found, next.record().halves.forward, name());
    return found;
  }

  BackwardVariant variant(const variable_list& gradients) const {
    BackwardVariant variant;
    variant.tangents.reserve(gradients.size());
    for (const at::Tensor& gradient : gradients) variant.tangents.push_back(tangent_meta(gradient));
    for (size_t i = 0; i < num_outputs(); ++i) variant.wanted.push_back(task_should_compute_output(i));
    for (const auto& [input, edge] : unused_) variant.wanted[input] = true;  // as is expected; there is nothing to compute
    return variant;
  }

  void refuse_second(const BackwardVariant& asked) {
    std::lock_guard lock(mutex_);
    TORCH_CHECK(done_.empty() || !derivative_.refuse(done_, asked_of(asked)), torch::autograd::ERR_BACKWARD_TWICE);
  }

  Tensors unpack(const std::vector<size_t>& wanted, size_t tangents) {
    std::lock_guard lock(mutex_);
    Tensors inputs;
    inputs.reserve(wanted.size() + tangents);
    for (size_t i : wanted) inputs.push_back(saved_[i].unpack(getptr()));
    return inputs;
  }

  /// Behind the last backward through a part of the history, each value dies at its last use inside the compiled code, as in eager. `as_first` is what there is to give up where none was before.
  void give_up(const BackwardVariant& asked, const std::vector<size_t>& taken, const std::vector<size_t>* as_first = nullptr) {
    std::lock_guard lock(mutex_);
    done_.push_back(asked_of(asked));
    for (size_t i : as_first && done_.size() == 1 ? *as_first : derivative_.given_up(done_, taken)) saved_[i].reset_data();
  }

  std::shared_ptr<Entry> entry_;             ///< owns the derivative
  Derivative& derivative_;
  std::vector<SavedVariable> saved_;
  std::vector<Between> done_;                ///< backwards that were the last ones through their nodes
  UnusedEdges unused_;
};

}  // namespace

void attach_compiled_node(RunningCall& call) {
  const Entry& entry = *call.entry;
  torch::autograd::edge_list edges;
  edges.reserve(entry.plan().gradient_inputs.size());
  for (size_t i : entry.plan().gradient_inputs) edges.push_back(torch::autograd::impl::gradient_edge(call.inputs[i]));
  UnusedEdges unused;
  for (size_t i : entry.plan().unreached) unused.emplace_back(i, std::exchange(edges[i], {}));
  auto node = make_node<CompiledNode>(call.entry, call.entry->first_derivative(), std::move(edges), std::move(unused));
  for (size_t i : entry.plan().differentiable) torch::autograd::set_history(call.results[i], node);
  call.node = node;
}

void save_values(RunningCall& call) {
  share_versions(call.entry->first_derivative(), call.inputs, call.results, call.saved);
  static_cast<CompiledNode&>(*call.node).save(call.saved, call.results);
  call.saved.clear();
}

}  // namespace tandem
