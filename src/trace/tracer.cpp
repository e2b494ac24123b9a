#include "trace/tracer.h"

#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <atomic>

#include "base/autograd.h"
#include "trace/failure.h"
#include "trace/shapes.h"

namespace tandem {

thread_local Tracer* current_tracer = nullptr;

Tracer* Tracer::current() { return current_tracer; }

/// While it lives, this thread records into a tracer; autograd stays on the thread, so that CUDA's backward is recorded too.
class Recording {
 public:
  Recording(Tracer& tracer, Phase phase, c10::DispatchKeySet keys) : tracer_(tracer), include_(keys), previous_(current_tracer) {
    tracer.phase_ = phase;
    current_tracer = &tracer;
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  }
  ~Recording() {
    c10::AutogradState::get_tls_state().set_multithreading_enabled(multithreading_);
    current_tracer = previous_;
    tracer_.phase_ = Phase::Forward;
  }

 private:
  Tracer& tracer_;
  c10::impl::IncludeDispatchKeyGuard include_;
  Tracer* previous_;
  bool multithreading_ = c10::AutogradState::get_tls_state().get_multithreading_enabled();
};

namespace {

std::atomic<uint64_t> tracer_count = 0;

/// Lets gradients through: makes a non-leaf of a leaf, as the real tensor is one.
struct InputBoundary : torch::autograd::Node {
  using Node::Node;
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override { return std::move(gradients); }
  std::string name() const override { return "tandem::InputBoundary"; }
};

/// Stands where the gradients of a captured tensor's fake end, and leads on to the real one while the program runs: `autograd::grad` inside it asks for the
/// tensor that it knows.
struct CaptureEnd : torch::autograd::Node {
  using Node::Node;
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    if (!ends_here()) {
      try {
        throw RunEagerly("the function calls backward() on a tensor that it captured, or differentiates through one");
      } catch (...) {
        last_failure() = std::current_exception();
        throw;
      }
    }
    return std::move(gradients);
  }
  std::string name() const override { return "tandem::CaptureEnd"; }
  void let_go() { next_edges_.clear(); }

 private:
  /// autograd::grad has a place for the result there, backward() has not; what lies behind the real tensor is not ours to differentiate.
  bool ends_here() const {
    const auto* executed = torch::autograd::get_current_graph_task_exec_info();
    if (!executed || executed->empty()) return false;
    auto next = executed->find(next_edge(0).function.get());
    return next != executed->end() && next->second.captures_ && !next->second.needed_;
  }
};

at::Tensor non_leaf_of(const at::Tensor& leaf) {
  at::Tensor visible(leaf.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), true));
  auto boundary = make_node<InputBoundary>(torch::autograd::edge_list{torch::autograd::impl::gradient_edge(leaf)});
  boundary->add_input_metadata(visible);
  torch::autograd::impl::set_gradient_edge(visible, {NodePtr(boundary), 0});
  return visible;
}

std::pair<int64_t, int64_t> byte_range(const at::Tensor& tensor) {
  int64_t first = tensor.storage_offset(), last = first;
  if (tensor.numel() == 0) return {first * tensor.itemsize(), first * tensor.itemsize()};
  for (int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  return {first * int64_t(tensor.itemsize()), (last + 1) * int64_t(tensor.itemsize())};
}

}  // namespace

std::optional<std::string> uncompiled_kind(const at::Tensor& tensor) {
  if (!tensor.defined() || as_fake(tensor)) return std::nullopt;
  const auto* impl = tensor.unsafeGetTensorImpl();
  if (impl->key_set().has_any(c10::DispatchKeySet({c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper})))
    return "a tensor inside a vmap or grad transform";
  if (tensor.is_nested()) return "a nested tensor";
  if (tensor.is_mkldnn()) return "an mkldnn tensor";
  if (tensor.layout() != at::kStrided) return "a sparse tensor";
  if (tensor.is_quantized()) return "a quantised tensor";
  if (impl->key_set().has(c10::DispatchKey::Python)) return "a tensor subclass";
  if (!tensor.device().is_cpu() && !tensor.device().is_cuda()) return "a tensor on " + tensor.device().str();
  if (!tensor.has_storage()) return "a tensor without storage";
  if (tensor._is_zerotensor()) return "a zero tensor";
  if (tensor._fw_grad(0).defined()) return "a forward-mode dual tensor";
  return std::nullopt;
}

Tracer::Tracer(bool record_locations) : id_(++tracer_count), record_locations_(record_locations) {}

int32_t Tracer::storage_id(const c10::Storage& meta_storage) {
  auto [found, fresh] = storage_ids_.try_emplace(meta_storage.unsafeGetStorageImpl(), int32_t(storages_.size()));
  if (fresh) storages_.push_back(meta_storage);
  return found->second;
}

Value Tracer::add_value(const at::Tensor& meta, c10::Device device) {
  TensorMeta description = describe(meta, device);
  description.storage = storage_id(meta.unsafeGetTensorImpl()->unsafe_storage());
  return graph_.add_value(std::move(description));
}

at::Tensor Tracer::wrap(at::Tensor meta, c10::Device device) {
  Value value = add_value(meta, device);
  return at::Tensor(c10::make_intrusive<FakeImpl>(std::move(meta), device, value, id_));
}

c10::Storage Tracer::twin_storage(const at::Tensor& real) {
  auto [begin, end] = byte_range(real);
  const auto* storage = real.storage().unsafeGetStorageImpl();
  for (Region& region : regions_) {
    if (region.real != storage || region.end <= begin || end <= region.begin) continue;
    region.begin = std::min(region.begin, begin);
    region.end = std::max(region.end, end);
    return region.meta;
  }
  auto meta = c10::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), real.storage().nbytes(),
                                                                 c10::DataPtr(nullptr, c10::kMeta), c10::GetAllocator(c10::kMeta), true));
  regions_.push_back({storage, begin, end, meta});
  return meta;
}

TracedInput Tracer::make_twin(const at::Tensor& real, bool captured) {
  c10::impl::ExcludeDispatchKeyGuard below(c10::DispatchKeySet({c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit}));
  c10::InferenceMode as_the_real_one(real.is_inference());
  auto meta = c10::make_intrusive<c10::TensorImpl>(twin_storage(real), c10::DispatchKeySet(c10::DispatchKey::Meta), real.dtype());
  meta->set_sizes_and_strides(real.sizes(), real.strides(), real.storage_offset());
  at::Tensor description(std::move(meta));
  if (real.is_conj()) description._set_conj(true);
  if (real.is_neg()) description._set_neg(true);
  TracedInput input;
  input.real = real;
  input.captured = captured;
  input.leaf = wrap(std::move(description), real.device());
  input.value = as_fake(input.leaf)->value;
  if (real.requires_grad()) {
    input.leaf.set_requires_grad(true);
    graph_.meta(input.value).requires_grad = true;
  }
  if (captured && real.requires_grad()) {
    input.end = make_node<CaptureEnd>(torch::autograd::edge_list{torch::autograd::impl::gradient_edge(real)});
    input.end->add_input_metadata(input.leaf);
    torch::autograd::impl::set_grad_accumulator(input.leaf, WeakNodePtr(input.end));
  }
  input.visible = real.requires_grad() && !real.is_leaf() ? non_leaf_of(input.leaf) : input.leaf;
  graph_.add_input(input.value);
  return input;
}

at::Tensor Tracer::add_argument(const at::Tensor& real) {
  if (!real.defined()) return real;
  auto [found, fresh] = twins_.try_emplace(real.unsafeGetTensorImpl(), inputs_.size());
  if (fresh) {
    inputs_.push_back(make_twin(real, /*captured=*/false));
    // The program may ask its argument for the gradient that has gathered there.
    if (real.is_leaf() && real.grad().defined()) inputs_.back().leaf.mutable_grad() = real.grad();
  }
  return inputs_[found->second].visible;
}

bool Tracer::has_met(const at::Tensor& real) const { return twins_.count(real.unsafeGetTensorImpl()) > 0; }

at::Tensor Tracer::twin(const at::Tensor& real) {
  auto [found, fresh] = twins_.try_emplace(real.unsafeGetTensorImpl(), inputs_.size());
  if (fresh) {
    if (auto kind = uncompiled_kind(real)) throw RunEagerly("the function uses " + *kind + " that it captured");
    // Memory that no allocator owns (from_blob) may be gone when the trace ends.
    if (!real.storage().allocator()) {
      c10::impl::ExcludeDispatchKeyGuard below(c10::DispatchKeySet({c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit}));
      at::NoGradGuard no_grad;
      snapshots_[int32_t(inputs_.size())] = real.detach().clone();
    }
    inputs_.push_back(make_twin(real, /*captured=*/true));
  } else if (!inputs_[found->second].captured) {
    inputs_[found->second].also_captured = true;
  }
  return inputs_[found->second].visible;
}

at::Tensor Tracer::add_tangent(const TensorMeta& like) {
  at::Tensor tangent = wrap(make_meta(like), like.device);
  if (like.requires_grad) {
    tangent.set_requires_grad(true);
    graph_.meta(value_of(tangent)).requires_grad = true;
  }
  graph_.add_input(value_of(tangent));
  return tangent;
}

Value Tracer::value_of(const at::Tensor& fake) const {
  FakeImpl* impl = as_fake(fake);
  if (!impl || impl->tracer != id_) throw Error("a tensor of another trace was used inside this one; it has no data here");
  return impl->value;
}

void Tracer::record(const std::function<void()>& program) {
  Recording recording(*this, Phase::Forward, c10::DispatchKeySet({c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit}));
  program();
}

namespace {

/// Reading a tensor notes that it requires grad; what the forward recorded must not change with the backwards that are taken of it.
class KeptMarks {
 public:
  explicit KeptMarks(Graph& graph) : graph_(graph) {
    for (size_t id = 0; id < graph.value_count(); ++id) marks_.push_back(graph.meta(Value{int32_t(id)}).requires_grad);
  }
  ~KeptMarks() {
    for (size_t id = 0; id < marks_.size(); ++id) graph_.meta(Value{int32_t(id)}).requires_grad = marks_[id];
  }

 private:
  Graph& graph_;
  std::vector<bool> marks_;
};

}  // namespace

Tensors Tracer::gradients(Phase phase, const Tensors& outputs, const Tensors& inputs, const Tensors& tangents) {
  KeptMarks kept(graph_);
  Recording recording(*this, phase, c10::DispatchKeySet(c10::DispatchKey::Fake));
  // Eager calls the backward outside the region in which the forward was autocast.
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  last_failure() = nullptr;
  Tensors found;
  try {
    found = torch::autograd::grad(outputs, inputs, tangents, /*retain_graph=*/true, /*create_graph=*/phase == Phase::Forward, /*allow_unused=*/true);
  } catch (...) {
    rethrow_refusal();
    throw;
  }
  rethrow_refusal();
  return found;
}

Tensors Tracer::differentiate(const Tensors& outputs, const Tensors& inputs, const Tensors& tangents) {
  return gradients(Phase::Backward, outputs, inputs, tangents);
}

Tensors Tracer::differentiate_keeping_graph(const Tensors& outputs, const Tensors& inputs, const Tensors& tangents) {
  return gradients(Phase::Forward, outputs, inputs, tangents);
}

void Tracer::lift_arguments(size_t count, torch::jit::Stack& stack) {
  auto lift = [this](const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl()->is_wrapped_number() ? tensor : twin(tensor); };
  auto is_real = [](const at::Tensor& tensor) { return tensor.defined() && !tensor.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::Fake); };
  for (size_t i = stack.size() - count; i < stack.size(); ++i) {
    c10::IValue& argument = stack[i];
    if (argument.isTensor()) {
      if (is_real(argument.toTensor())) argument = lift(argument.toTensor());
    } else if (argument.isTensorList()) {
      auto list = argument.toTensorList();
      if (std::none_of(list.begin(), list.end(), [&](const auto& t) { return is_real(t); })) continue;
      c10::List<at::Tensor> lifted;
      for (const at::Tensor& t : argument.toTensorVector()) lifted.push_back(is_real(t) ? lift(t) : t);
      argument = lifted;
    } else if (argument.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> lifted;
      for (const std::optional<at::Tensor>& t : argument.toOptionalTensorVector()) lifted.push_back(t && is_real(*t) ? lift(*t) : t);
      argument = lifted;
    }
  }
}

void Tracer::settle_captures() {
  // The program has ended; its captures may die from here on.
  for (TracedInput& input : inputs_)
    if (input.end) static_cast<CaptureEnd&>(*input.end).let_go();
  std::vector<Value> kept;
  std::vector<Value> constants;
  auto owners = [this](const c10::StorageImpl* storage) {
    size_t count = 0;
    for (const TracedInput& input : inputs_)
      if (input.captured && input.real.defined() && input.real.use_count() == 1 && input.real.storage().unsafeGetStorageImpl() == storage) ++count;
    return count;
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    TracedInput& input = inputs_[i];
    if (!input.captured || !input.real.defined() || input.real.use_count() > 1) continue;
    if (input.real.storage().use_count() > owners(input.real.storage().unsafeGetStorageImpl()))
      throw RunEagerly("the function reads a captured tensor through a temporary that shares its memory (.data()); use detach()");
    if (input.real.requires_grad()) continue;
    constants.push_back(input.value);
    auto snapshot = snapshots_.find(int32_t(i));
    graph_.constants().emplace_back(input.value, snapshot != snapshots_.end() ? snapshot->second : input.real);
  }
  snapshots_.clear();
  if (constants.empty()) return;
  for (Value value : graph_.inputs())
    if (std::find(constants.begin(), constants.end(), value) == constants.end()) kept.push_back(value);
  graph_.set_inputs(kept);
  std::erase_if(inputs_, [&](const TracedInput& input) { return std::find(constants.begin(), constants.end(), input.value) != constants.end(); });
  index_twins();
}

Value Tracer::settle_output(const at::Tensor& output) {
  FakeImpl* fake = as_fake(output);
  if (fake && fake->tracer == id_ && fake->lent_memory()) adopt_written_memory(*fake);
  return value_of(output);
}

void Tracer::release_real_tensors() {
  for (TracedInput& input : inputs_) {
    input.real = at::Tensor();
    if (input.leaf.is_leaf()) input.leaf.mutable_grad() = at::Tensor();
  }
  index_twins();
}

void Tracer::hold_captures(const Tensors& captures) {
  size_t next = 0;
  for (TracedInput& input : inputs_)
    if (input.captured && next < captures.size()) input.real = captures[next++];
  index_twins();
}

void Tracer::index_twins() {
  twins_.clear();
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].real.defined()) twins_[inputs_[i].real.unsafeGetTensorImpl()] = i;
}

void Tracer::truncate(size_t nodes) {
  graph_.nodes().erase(graph_.nodes().begin() + int64_t(nodes), graph_.nodes().end());
  std::vector<Value> inputs;
  for (const TracedInput& input : inputs_) inputs.push_back(input.value);
  graph_.set_inputs(std::move(inputs));
}

void Tracer::resume(const std::vector<Node>& nodes, const std::vector<Value>& tangents) {
  graph_.nodes().insert(graph_.nodes().end(), nodes.begin(), nodes.end());
  for (Value tangent : tangents) graph_.add_input(tangent);
}

}  // namespace tandem
