// Which real tensors go into a trace, and the fakes that stand for them.
#include <torch/csrc/autograd/variable.h>

#include "graph/geometry.h"
#include "trace/boundaries.h"
#include "trace/tracer.h"

namespace tandem {
std::optional<std::string> uncompiled_kind(const at::Tensor& tensor) {
  if (!tensor.defined() || as_fake(tensor)) return std::nullopt;
  const auto* impl = tensor.unsafeGetTensorImpl();
  if (impl->key_set().has_any(
          c10::DispatchKeySet({c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper})))
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

namespace {

/// Storages that share memory begin at the same place.
const void* memory_of(const at::Tensor& real) { return real.storage().unsafeGetStorageImpl()->data(); }

}  // namespace

c10::Storage Tracer::twin_storage(const at::Tensor& real) {
  std::optional<c10::Storage> shared;
  auto [first, last] = by_memory_.equal_range(memory_of(real));
  for (; first != last; ++first) {
    const TracedInput& input = inputs_[first->second];
    if (!input.real.storage().is_alias_of(real.storage()) ||
        surely_strangers(placement_of(input.real), placement_of(real)))
      continue;
    const c10::Storage& meta = as_fake(input.leaf)->meta.storage();
    if (shared && !shared->is_alias_of(meta))
      throw RunEagerly("a tensor overlaps two others that do not overlap each other");
    shared = meta;
  }
  if (shared) return *shared;
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), real.storage().nbytes(), c10::DataPtr(nullptr, c10::kMeta),
      c10::GetAllocator(c10::kMeta), true));
}

TracedInput Tracer::make_twin(const at::Tensor& real, bool captured) {
  c10::impl::ExcludeDispatchKeyGuard below(
      c10::DispatchKeySet({c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit}));
  c10::InferenceMode as_the_real_one(real.is_inference());
  auto meta = c10::make_intrusive<c10::TensorImpl>(twin_storage(real),
                                                   c10::DispatchKeySet(c10::DispatchKey::Meta), real.dtype());
  meta->set_sizes_and_strides(real.sizes(), real.strides(), real.storage_offset());
  at::Tensor description(std::move(meta));
  if (real.is_conj()) description._set_conj(true);
  if (real.is_neg()) description._set_neg(true);
  TracedInput input;
  input.real = real;
  input.captured = captured;
  input.required_grad = real.requires_grad();
  input.base_required_grad = real.is_view() && real._base().requires_grad();
  if (captured && real.is_leaf()) {
    auto remembered = gathered_places_.find(real.unsafeGetTensorImpl());
    input.grad = remembered == gathered_places_.end() ? real.grad() : gathered_[remembered->second].gradient;
  }
  input.leaf = wrap(std::move(description), real.device());
  input.value = as_fake(input.leaf)->value;
  // The program may read it, and a constant that it returns has it.
  if (!real.is_inference())
    input.leaf.unsafeGetTensorImpl()->set_version_counter(c10::VariableVersion(real._version()));
  if (real.requires_grad()) {
    input.leaf.set_requires_grad(true);
    graph_.meta(input.value).requires_grad = true;
    if (real.is_view() && !real._base().requires_grad())
      leaf_views_.push_back(graph_.meta(input.value).storage);
  }
  if (captured && real.requires_grad()) {
    input.end = end_at(input.leaf, real);
  }
  input.visible = input.leaf;
  if (captured && real.requires_grad() && !real.is_leaf()) input.visible = non_leaf_of(input.leaf, nullptr);
  input.version = version_of(input.visible);
  graph_.add_input(input.value);
  return input;
}

TracedInput& Tracer::add_twin(const at::Tensor& real, bool captured) {
  inputs_.push_back(make_twin(real, captured));
  by_memory_.emplace(memory_of(real), inputs_.size() - 1);
  return inputs_.back();
}

Tensors Tracer::add_arguments(const Tensors& reals) {
  std::vector<size_t> computed;
  for (const at::Tensor& real : reals) {
    if (!real.defined() || !twins_.try_emplace(real.unsafeGetTensorImpl(), inputs_.size()).second) continue;
    if (real.requires_grad() && !real.is_leaf()) computed.push_back(inputs_.size());
    TracedInput& input = add_twin(real, /*captured=*/false);
    // The program may ask its argument for the gradient that has gathered there.
    if (real.is_leaf() && real.grad().defined()) input.leaf.mutable_grad() = real.grad();
  }
  // Each behind what it was computed from, as autograd numbers its nodes.
  auto depth = [this](size_t i) { return inputs_[i].real.grad_fn()->topological_nr(); };
  std::sort(computed.begin(), computed.end(), [&](size_t a, size_t b) { return depth(a) < depth(b); });
  for (size_t i : computed) {
    inputs_[i].end = history_of(inputs_[i].real, inputs_);
    inputs_[i].visible = non_leaf_of(inputs_[i].leaf, inputs_[i].end);
    inputs_[i].version = version_of(inputs_[i].visible);
  }
  Tensors fakes;
  for (const at::Tensor& real : reals)
    fakes.push_back(real.defined() ? inputs_[twins_.at(real.unsafeGetTensorImpl())].visible : real);
  return fakes;
}

bool Tracer::has_met(const at::Tensor& real) const { return twins_.count(real.unsafeGetTensorImpl()) > 0; }

void Tracer::stand_for(const at::Tensor& real, at::Tensor fake) {
  stand_ins_.emplace(real.unsafeGetTensorImpl(), std::move(fake));
}

/// What a custom function saved of a captured tensor comes back as a copy of it: the same memory and
/// versions.
const TracedInput* Tracer::original_of(const at::Tensor& saved) const {
  auto is_this = [&](const TracedInput& input) {
    const at::Tensor& real = input.real;
    return real.defined() && real.has_storage() && saved.has_storage() &&
           real.storage().is_alias_of(saved.storage()) && real.sizes() == saved.sizes() &&
           real.strides() == saved.strides() && real.storage_offset() == saved.storage_offset() &&
           real.requires_grad() == saved.requires_grad() && have_one_version(real, saved);
  };
  auto found = std::find_if(inputs_.begin(), inputs_.end(), is_this);
  return found == inputs_.end() ? nullptr : &*found;
}

at::Tensor Tracer::twin(const at::Tensor& real) {
  if (auto stand_in = stand_ins_.find(real.unsafeGetTensorImpl()); stand_in != stand_ins_.end())
    return stand_in->second;
  if (differentiating_ && !has_met(real))
    if (const TracedInput* original = original_of(real)) return original->visible;
  auto [found, fresh] = twins_.try_emplace(real.unsafeGetTensorImpl(), inputs_.size());
  if (fresh) {
    if (auto kind = uncompiled_kind(real))
      throw RunEagerly("the function uses " + *kind + " that it captured");
    // Memory that no allocator owns (from_blob) may be gone when the trace ends.
    if (!real.storage().allocator()) {
      c10::impl::ExcludeDispatchKeyGuard below(
          c10::DispatchKeySet({c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit}));
      at::NoGradGuard no_grad;
      snapshots_[int32_t(inputs_.size())] = real.detach().clone();
    }
    add_twin(real, /*captured=*/true);
  } else if (!inputs_[found->second].captured) {
    inputs_[found->second].also_captured = true;
  }
  return inputs_[found->second].visible;
}

void Tracer::remember_gradients(const Tensors& leaves) {
  for (const at::Tensor& leaf : leaves)
    if (leaf.is_leaf() && gathered_places_.try_emplace(leaf.unsafeGetTensorImpl(), gathered_.size()).second)
      gathered_.push_back({leaf, leaf.grad()});
}

Tensors Tracer::leaves_with_other_gradients() const {
  Tensors found;
  for (const Gathered& gathered : gathered_)
    if (!gathered.leaf.grad().is_same(gathered.gradient)) found.push_back(gathered.leaf);
  return found;
}

bool Tracer::restore_gradients() const {
  const Tensors changed = leaves_with_other_gradients();
  for (const at::Tensor& leaf : changed)
    leaf.mutable_grad() = gathered_[gathered_places_.at(leaf.unsafeGetTensorImpl())].gradient;
  return !changed.empty();
}

/// Its captures may die from here on.
void Tracer::leave_outside_histories() {
  for (TracedInput& input : inputs_)
    if (input.end) let_go(*input.end);
}

void Tracer::settle_captures() {
  leave_outside_histories();
  std::vector<Value> kept;
  std::vector<Value> constants;
  auto owners = [this](const c10::StorageImpl* storage) {
    size_t count = 0;
    for (const TracedInput& input : inputs_)
      if (input.captured && input.real.defined() && input.real.use_count() == 1 &&
          input.real.storage().unsafeGetStorageImpl() == storage)
        ++count;
    return count;
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    TracedInput& input = inputs_[i];
    if (!input.captured || !input.real.defined() || input.real.use_count() > 1) continue;
    if (input.real.storage().use_count() > owners(input.real.storage().unsafeGetStorageImpl()))
      throw RunEagerly(
          "the function reads a captured tensor through a temporary that shares its memory (.data()); use "
          "detach()");
    if (input.real.requires_grad()) continue;
    constants.push_back(input.value);
    auto snapshot = snapshots_.find(int32_t(i));
    graph_.constants().emplace_back(input.value,
                                    snapshot != snapshots_.end() ? snapshot->second : input.real);
  }
  snapshots_.clear();
  if (constants.empty()) return;
  for (Value value : graph_.inputs())
    if (std::find(constants.begin(), constants.end(), value) == constants.end()) kept.push_back(value);
  graph_.set_inputs(kept);
  std::erase_if(inputs_, [&](const TracedInput& input) {
    return std::find(constants.begin(), constants.end(), input.value) != constants.end();
  });
  index_twins();
}

void Tracer::take_snapshots() {
  for (auto& [input, data] : snapshots_)
    if (inputs_[size_t(input)].real.use_count() == 1) inputs_[size_t(input)].real = data;
  snapshots_.clear();
}

void Tracer::release_real_tensors() {
  for (TracedInput& input : inputs_) {
    input.real = input.grad = at::Tensor();
    if (input.leaf.is_leaf()) input.leaf.mutable_grad() = at::Tensor();
  }
  stand_ins_.clear();
  gathered_.clear();
  gathered_places_.clear();
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
  by_memory_.clear();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const at::Tensor& real = inputs_[i].real;
    if (!real.defined()) continue;
    twins_[real.unsafeGetTensorImpl()] = i;
    by_memory_.emplace(memory_of(real), i);
  }
}

}  // namespace tandem
