#include "aot/replay.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <set>

#include "aot/known_values.h"
#include "base/generators.h"
#include "graph/draws.h"
#include "ops/generator_state.h"
#include "base/log.h"
#include "graph/boxing.h"

namespace tandem {
namespace {

/// The tensors of one run, by the values of the record.
class Replay {
 public:
  explicit Replay(const Tracer& tracer)
      : tracer_(tracer),
        graph_(tracer.graph()),
        known_(tracer),
        tensors_(graph_.value_count()),
        detached_(graph_.value_count()) {
    for (const auto& [value, data] : graph_.constants()) at(value) = data.detach().clone();
  }

  void set(Value value, at::Tensor tensor) { at(value) = std::move(tensor); }

  /// What the program did before node `n` besides calling operators.
  void go_to(size_t n) {
    known_.go_to(n, [this](Value value) { at(value).detach_(); });
  }

  /// Runs node `n`, as autograd was told when it was recorded; or behind autograd's back, where nothing is
  /// told.
  void run(size_t n, const AutogradOfCall* told = nullptr) {
    const Node& node = graph_.nodes()[n];
    told_ = told;
    passed_.clear();
    torch::jit::Stack stack;
    for (size_t a = 0; a < node.arguments.size(); ++a)
      stack.push_back(boxed(node.arguments[a], node.op.schema().arguments()[a]));
    for (const auto& [before, after] : node.writes) {
      auto passed = std::find_if(passed_.begin(), passed_.end(),
                                 [value = before](const auto& one) { return one.first == value; });
      // a list may name a tensor twice, which has another value from its first write on
      at(after) = passed == passed_.end() ? at(before) : passed->second;
    }
    std::optional<DrawsFromState> draws;
    if (node.state) draws.emplace(drawn_on(graph_, node), at(node.state));
    node.op.callBoxed(stack);
    if (node.next_state) at(node.next_state) = draws->state();
    for (size_t r = 0; r < node.results.size(); ++r) take(node.results[r], std::move(stack[r]));
  }

  /// What a fake stands for; undefined where nothing made it.
  at::Tensor of(const at::Tensor& fake) {
    for (const TracedInput& input : tracer_.inputs())
      if (input.visible.is_same(fake) || input.leaf.is_same(fake)) return at(input.value);
    return as_known(as_fake(fake)->value, fake.requires_grad());
  }
  at::Tensor data_of(const FakeImpl& fake) { return at(fake.value); }

 private:
  at::Tensor& at(Value value) { return tensors_[size_t(value.id)]; }

  /// `requires_grad_` and `data()` are no calls of operators: what they did shows in what autograd knew of a
  /// tensor when it was used.
  at::Tensor as_known(Value value, bool requires_grad) {
    at::Tensor& tensor = at(value);
    if (requires_grad) known_.add(value);
    if (!tensor.defined() || tensor.requires_grad() == requires_grad) return tensor;
    if (requires_grad) return tensor.requires_grad_();
    // Of inputs that share memory, and what is made of them, autograd knows more than their fakes did.
    if (!known_.has(value)) return tensor;
    at::Tensor& detached = detached_[size_t(value.id)];
    if (!detached.defined()) detached = tensor.detach();
    return detached;
  }

  at::Tensor read(Value value) {
    const size_t place = passed_.size();
    const bool is_told = told_ && place < 64;
    return passed_.emplace_back(value, is_told ? as_known(value, told_->reads_grad >> place & 1) : at(value))
        .second;
  }

  c10::IValue boxed(const Operand& operand, const c10::Argument& argument) {
    if (auto* constant = std::get_if<c10::IValue>(&operand)) return *constant;
    if (auto* value = std::get_if<Value>(&operand)) {
      if (*value && is_number(*argument.type())) return at(*value).item();
      if (*value) return read(*value);
      return is_optional(argument) ? c10::IValue() : c10::IValue(at::Tensor());
    }
    const auto& values = std::get<std::vector<Value>>(operand);
    if (is_list_of_numbers(*argument.type())) {
      c10::List<at::Scalar> list;
      for (Value value : values) list.push_back(at(value).item());
      return list;
    }
    if (!is_list_of_optionals(argument)) {
      c10::List<at::Tensor> list;
      for (Value value : values) list.push_back(value ? read(value) : at::Tensor());
      return list;
    }
    c10::List<std::optional<at::Tensor>> list;
    for (Value value : values) list.push_back(value ? std::optional(read(value)) : std::nullopt);
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
  KnownValues known_;
  Tensors tensors_, detached_;
  const AutogradOfCall* told_ = nullptr;
  std::vector<std::pair<Value, at::Tensor>> passed_;  ///< what the node that runs was given
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
      const auto bytes = at::empty({0}, real.options().dtype(at::kByte))
                             .set_(real.storage(), 0, {int64_t(real.storage().nbytes())}, {1});
      found->second = bytes.clone().storage();
    }
    return at::empty({0}, real.options())
        .set_(found->second, real.storage_offset(), real.sizes(), real.strides());
  }

 private:
  std::set<int32_t> written_;
  std::map<const c10::StorageImpl*, c10::Storage> copies_;
};

void keep_generators(GeneratorsKept& kept, const Graph& graph) {
  std::set<c10::DeviceIndex> devices;
  kept.keep(at::globalContext().defaultGenerator(c10::kCPU));
  for (size_t v = 0; v < graph.value_count(); ++v)
    if (const c10::Device device = graph.meta(Value{int32_t(v)}).device;
        device.is_cuda() && devices.insert(device.index()).second)
      kept.keep(at::globalContext().defaultGenerator(device));
  for (const Node& node : graph.nodes())
    for (const Operand& argument : node.arguments)
      if (auto* constant = std::get_if<c10::IValue>(&argument); constant && constant->isGenerator())
        kept.keep(constant->toGenerator());
}

/// A view that was made under no_grad requires grad with its base, and is a leaf of its own where it was
/// asked to be.
void make_leaf_where_asked(const at::Tensor& fake, const at::Tensor& real) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(fake);
  if (meta && meta->requires_grad_ && fake.is_leaf() && real.is_view() && real.is_leaf())
    at::Tensor(real).set_requires_grad(true);
}

/// What the program did to a leaf besides calling operators.
void give_leaf_its_gradient(Replay& run, const at::Tensor& fake, const at::Tensor& real) {
  if (!fake.is_leaf() || !fake.requires_grad()) return;
  if (const at::Tensor& gradient = fake.grad(); gradient.defined() && as_fake(gradient))
    real.mutable_grad() = run.of(gradient);
}

/// `requires_grad_` behind the last operator that reads the input.
void require_grad_as_asked(const TracedInput& input) {
  if (!input.visible.is_leaf()) return;
  const bool wanted = input.visible.requires_grad(), was_asked = wanted || input.required_grad;
  if (was_asked && input.real.requires_grad() != wanted && input.real.is_leaf())
    at::Tensor(input.real).set_requires_grad(wanted);
}

}  // namespace

bool can_be_replayed(const Traced& traced) {
  // Where sizes change behind autograd, whether eager has a gradient depends on what it looks at.
  if (!traced.tracer->refusal().empty() && traced.tracer->met_inner_gradient()) return false;
  return !traced.tracer->met_saved_tensor_hooks() && !writes_behind_autograd(traced) && !has_own_code(traced);
}

Tensors replay(const Traced& traced) {
  const Tracer& tracer = *traced.tracer;
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);  // the record has its casts
  Replay run(tracer);
  for (const TracedInput& input : tracer.inputs()) run.set(input.value, input.real);
  for (size_t n = 0; n < traced.forward_nodes; ++n) {
    at::AutoGradMode mode(tracer.modes()[n].grad_mode);
    run.go_to(n);
    run.run(n, &tracer.modes()[n]);
  }
  run.go_to(traced.forward_nodes);
  auto finished = [&](const at::Tensor& fake) {
    if (!fake.defined()) return fake;
    at::Tensor real = run.of(fake);
    if (fake.retains_grad()) real.retain_grad();
    make_leaf_where_asked(fake, real);
    give_leaf_its_gradient(run, fake, real);
    return real;
  };
  Tensors outputs;
  for (const at::Tensor& output : traced.outputs) outputs.push_back(finished(output));
  for (const TracedInput& input : tracer.inputs()) require_grad_as_asked(input);
  for (const TracedInput& input : tracer.inputs())
    for (const TracedGradient& gradient : traced.gradients)
      if (gradient.leaf == input.value)
        input.real.mutable_grad() = gradient.output ? outputs[*gradient.output] : at::Tensor();
  outputs.resize(outputs.size() - count_gradients(traced.gradients));
  for (const FakePtr& fake : traced.kept) fake->become(finished(at::Tensor(fake)));
  return outputs;
}

void give_data(const Tracer& tracer, const std::vector<FakePtr>& kept) {
  if (kept.empty()) return;
  const Graph& graph = tracer.graph();
  c10::impl::ExcludeDispatchKeyGuard untraced(
      c10::autocast_dispatch_keyset |
      c10::DispatchKeySet({c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit}));
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
    at::Tensor data = run.data_of(*fake);
    fake->become(data.defined() ? data
                                : at::empty_strided(fake->sizes(), fake->strides(),
                                                    fake->meta.options().device(fake->device())));
  }
}

}  // namespace tandem
