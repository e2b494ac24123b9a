#include "aot/replay.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <set>

#include "base/generators.h"
#include "base/history.h"
#include "base/log.h"
#include "graph/boxing.h"
#include "trace/boundaries.h"

namespace tandem {
namespace {

/// The tensors of one run, by the values of the record.
class Replay {
 public:
  explicit Replay(const Tracer& tracer) : tracer_(tracer), graph_(tracer.graph()), tensors_(graph_.value_count()) {
    for (const auto& [value, data] : graph_.constants()) at(value) = data.detach().clone();
  }

  void set(Value value, at::Tensor tensor) { at(value) = std::move(tensor); }

  void run(size_t n) {
    const Node& node = graph_.nodes()[n];
    torch::jit::Stack stack;
    for (size_t a = 0; a < node.arguments.size(); ++a) stack.push_back(boxed(node.arguments[a], node.op.schema().arguments()[a]));
    for (const auto& [before, after] : node.writes) at(after) = at(before);
    node.op.callBoxed(stack);
    for (size_t r = 0; r < node.results.size(); ++r) take(node.results[r], std::move(stack[r]));
  }

  /// What a fake stands for; undefined where nothing made it.
  at::Tensor of(const FakeImpl& fake, bool requires_grad) const {
    const at::Tensor& tensor = tensors_[size_t(fake.value.id)];
    // `.data()` makes no node.
    return tensor.defined() && tensor.requires_grad() && !requires_grad ? tensor.detach() : tensor;
  }

 private:
  at::Tensor& at(Value value) { return tensors_[size_t(value.id)]; }

  c10::IValue boxed(const Operand& operand, const c10::Argument& argument) {
    if (auto* constant = std::get_if<c10::IValue>(&operand)) return *constant;
    if (auto* value = std::get_if<Value>(&operand)) {
      if (*value) return at(*value);
      return is_optional(argument) ? c10::IValue() : c10::IValue(at::Tensor());
    }
    const auto& values = std::get<std::vector<Value>>(operand);
    if (!is_list_of_optionals(argument)) {
      c10::List<at::Tensor> list;
      for (Value value : values) list.push_back(value ? at(value) : at::Tensor());
      return list;
    }
    c10::List<std::optional<at::Tensor>> list;
    for (Value value : values) list.push_back(value ? std::optional(at(value)) : std::nullopt);
    return list;
  }

  void take(const Operand& operand, c10::IValue result) {
    if (auto* value = std::get_if<Value>(&operand)) {
      if (*value && result.isTensor()) at(*value) = std::move(result).toTensor();
    } else if (auto* values = std::get_if<std::vector<Value>>(&operand)) {
      const auto list = result.toTensorVector();
      for (size_t i = 0; i < values->size(); ++i)
        if ((*values)[i]) at((*values)[i]) = list[i];
    }
  }

  const Tracer& tracer_;
  const Graph& graph_;
  Tensors tensors_;
};

/// Copies of the memory that the record writes, one for all the inputs that lie in it.
class Copies {
 public:
  explicit Copies(const Graph& graph) {
    for (const Node& node : graph.nodes())
      for (const auto& [before, after] : node.writes) written_.insert(graph.meta(before).storage);
  }

  at::Tensor of(const at::Tensor& real, int32_t storage) {
    if (!written_.count(storage)) return real.detach();
    auto [found, fresh] = copies_.try_emplace(real.storage().unsafeGetStorageImpl());
    if (fresh) {
      const auto bytes = at::empty({0}, real.options().dtype(at::kByte)).set_(real.storage(), 0, {int64_t(real.storage().nbytes())}, {1});
      found->second = bytes.clone().storage();
    }
    return at::empty({0}, real.options()).set_(found->second, real.storage_offset(), real.sizes(), real.strides());
  }

 private:
  std::set<int32_t> written_;
  std::map<const c10::StorageImpl*, c10::Storage> copies_;
};

void keep_generators(GeneratorsKept& kept, const Graph& graph) {
  std::set<c10::DeviceIndex> devices;
  kept.keep(at::globalContext().defaultGenerator(c10::kCPU));
  for (size_t v = 0; v < graph.value_count(); ++v)
    if (const c10::Device device = graph.meta(Value{int32_t(v)}).device; device.is_cuda() && devices.insert(device.index()).second)
      kept.keep(at::globalContext().defaultGenerator(device));
  for (const Node& node : graph.nodes())
    for (const Operand& argument : node.arguments)
      if (auto* constant = std::get_if<c10::IValue>(&argument); constant && constant->isGenerator()) kept.keep(constant->toGenerator());
}

bool is_input(const Tracer& tracer, const at::Tensor& fake) {
  return std::any_of(tracer.inputs().begin(), tracer.inputs().end(), [&](const TracedInput& input) { return input.leaf.is_same(fake) || input.visible.is_same(fake); });
}

}  // namespace

bool can_be_replayed(const Traced& traced) try {
  if (traced.tracer->met_saved_tensor_hooks()) return false;
  Tensors ends = traced.outputs;
  for (const FakePtr& fake : traced.kept) ends.emplace_back(fake);
  for (const TracedInput& input : traced.tracer->inputs()) ends.push_back(input.visible);
  for (torch::autograd::Node* node : nodes_behind(ends)) {
    if (auto* end = dynamic_cast<torch::autograd::AccumulateGrad*>(node)) {
      if (!is_input(*traced.tracer, end->variable)) return false;
    } else if (runs_own_code(*node) && !is_boundary(*node)) {
      return false;
    }
  }
  // A view of a leaf that was made under no_grad is no leaf of its own.
  auto starts_here = [&](const at::Tensor& end) { return end.defined() && end.requires_grad() && end.is_leaf() && !end.is_view() && !is_input(*traced.tracer, end); };
  return std::none_of(ends.begin(), ends.end(), starts_here);
} catch (const c10::Error&) {
  // Asking a view for its history is an error where its base was written in a way that autograd forbids; a run of operators does not ask.
  return !traced.tracer->met_own_code();
}

Tensors replay(const Traced& traced) {
  const Tracer& tracer = *traced.tracer;
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);   // the record has its casts
  Replay run(tracer);
  for (const TracedInput& input : tracer.inputs()) run.set(input.value, input.real);
  for (size_t n = 0; n < traced.forward_nodes; ++n) {
    at::AutoGradMode mode(tracer.grad_modes()[n]);
    run.run(n);
  }
  Tensors outputs;
  for (const at::Tensor& output : traced.outputs) outputs.push_back(output.defined() ? run.of(*as_fake(output), output.requires_grad()) : output);
  for (const FakePtr& fake : traced.kept) fake->become(run.of(*fake, fake->requires_grad()));
  return outputs;
}

void give_data(const Tracer& tracer, const std::vector<FakePtr>& kept) {
  if (kept.empty()) return;
  const Graph& graph = tracer.graph();
  c10::impl::ExcludeDispatchKeyGuard untraced(c10::autocast_dispatch_keyset | c10::DispatchKeySet({c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit}));
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  GeneratorsKept generators;
  keep_generators(generators, graph);
  Replay run(tracer);
  Copies copies(graph);
  for (const TracedInput& input : tracer.inputs())
    if (input.real.defined()) run.set(input.value, copies.of(input.real, graph.meta(input.value).storage));
  try {
    for (size_t n = 0; n < graph.nodes().size(); ++n) run.run(n);
  } catch (const std::exception& error) {
    log("trace", std::string("what a refused trace left behind could not be computed: ") + error.what());
  }
  for (const FakePtr& fake : kept) {
    at::Tensor data = run.of(*fake, false);
    fake->become(data.defined() ? data : at::empty_strided(fake->sizes(), fake->strides(), fake->meta.options().device(fake->device())));
  }
}

}  // namespace tandem
