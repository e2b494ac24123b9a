#include "runtime/signature.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <unordered_map>

#include <c10/util/hash.h>

#include "graph/geometry.h"
#include "graph/vocabulary.h"
#include "runtime/module_state.h"

namespace tandem {
namespace {

const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() : nullptr;
}

bool has_placement(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.is_nested() && tensor.layout() == at::kStrided && tensor.has_storage();
}

bool has_gradient(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_leaf() && tensor.unsafeGetTensorImpl()->grad().defined();
}

std::vector<bool> gradients_of(const Tensors& captures, const Watched& watched) {
  std::vector<bool> gradients = watched.gradients;
  for (const at::Tensor& capture : captures) gradients.push_back(has_gradient(capture));
  return gradients;
}

std::vector<bool> training_of(const Watched& watched) {
  std::vector<bool> training;
  for (const auto* module : watched.modules) training.push_back(module->is_training());
  return training;
}

std::string changed(const std::string& what, const std::string& from, const std::string& to) {
  return what + " " + from + " -> " + to;
}

/// Asking a module for its parameters copies their names; at every call that is too much.
struct Parameters : torch::nn::Module {
  static const auto& of(const torch::nn::Module& module) { return module.*(&Parameters::parameters_); }
};

void collect(const torch::nn::Module& module, Watched& into) {
  into.modules.push_back(&module);
  for (const auto& parameter : Parameters::of(module)) {
    into.parameters.push_back(parameter.value().unsafeGetTensorImpl());
    into.gradients.push_back(has_gradient(parameter.value()));
  }
  append_module_state(module, into.state);
  for (const auto& child : module.children()) collect(*child, into);
}

}  // namespace

Watched watch_modules(const std::vector<std::shared_ptr<torch::nn::Module>>& roots) {
  Watched watched;
  for (const auto& root : roots) collect(*root, watched);
  return watched;
}

TensorKey::TensorKey(const at::Tensor& tensor) : defined(tensor.defined()) {
  if (!defined) return;
  dispatch_keys = tensor.key_set().raw_repr();
  dtype = tensor.scalar_type();
  device = tensor.device();
  requires_grad = tensor.requires_grad();
  leaf = tensor.is_leaf();
  if (tensor.layout() != at::kStrided || tensor.is_nested()) return;
  sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  strides.assign(tensor.strides().begin(), tensor.strides().end());
  offset = tensor.storage_offset();
}

bool TensorKey::matches(const at::Tensor& tensor, bool offsets_matter) const {
  if (!tensor.defined()) return !defined;
  const auto* impl = tensor.unsafeGetTensorImpl();
  if (!defined || impl->key_set().raw_repr() != dispatch_keys || tensor.scalar_type() != dtype ||
      impl->device() != device)
    return false;
  if (tensor.requires_grad() != requires_grad || (requires_grad && tensor.is_leaf() != leaf)) return false;
  if (impl->layout() != at::kStrided || tensor.is_nested()) return true;
  return impl->sizes() == at::IntArrayRef(sizes) && impl->strides() == at::IntArrayRef(strides) &&
         (!offsets_matter || impl->storage_offset() == offset);
}

std::string TensorKey::difference(const at::Tensor& tensor, bool offsets_matter) const {
  if (matches(tensor, offsets_matter)) return "";
  if (tensor.defined() != defined) return defined ? "is undefined now" : "was undefined";
  if (tensor.scalar_type() != dtype)
    return changed("dtype", c10::toString(dtype), c10::toString(tensor.scalar_type()));
  if (tensor.device() != device) return changed("device", device.str(), tensor.device().str());
  if (tensor.requires_grad() != requires_grad)
    return changed("requires_grad", requires_grad ? "true" : "false", requires_grad ? "false" : "true");
  if (requires_grad && tensor.is_leaf() != leaf) return leaf ? "is no leaf any more" : "is a leaf now";
  if (tensor.key_set().raw_repr() != dispatch_keys) return "is another kind of tensor";
  if (tensor.sizes() != at::IntArrayRef(sizes))
    return changed("sizes", dims_word(sizes), dims_word(tensor.sizes()));
  if (tensor.strides() != at::IntArrayRef(strides))
    return changed("strides", dims_word(strides), dims_word(tensor.strides()));
  return changed("storage offset", std::to_string(offset), std::to_string(tensor.storage_offset()));
}

Sharing Sharing::of(const Tensors& arguments, const Tensors& captures) {
  Sharing sharing;
  std::unordered_map<const c10::TensorImpl*, uint32_t> first;
  std::unordered_map<const c10::StorageImpl*, std::vector<std::pair<uint32_t, Placement>>> on;
  auto add = [&](const at::Tensor& tensor) {
    const uint32_t index = uint32_t(sharing.same.size());
    sharing.same.push_back(tensor.defined() ? first.emplace(tensor.unsafeGetTensorImpl(), index).first->second
                                            : index);
    if (!has_placement(tensor)) return;
    const Placement placement = placement_of(tensor);
    auto& others = on[storage_of(tensor)];
    for (const auto& [other, taken] : others)
      if (!surely_strangers(taken, placement)) sharing.overlaps.emplace_back(other, index);
    others.emplace_back(index, placement);
  };
  for (const at::Tensor& t : arguments) add(t);
  for (const at::Tensor& t : captures) add(t);
  return sharing;
}

Signature::Signature(const Tensors& arguments, const Tensors& captures, const Watched& watched,
                     bool offsets_matter, const Modes& modes)
    : modes_(modes),
      watched_(watched),
      training_(training_of(watched)),
      sharing_(Sharing::of(arguments, captures)),
      offsets_matter_(offsets_matter) {
  for (const at::Tensor& t : arguments) arguments_.emplace_back(t);
  for (const at::Tensor& t : captures) {
    captures_.emplace_back(t);
    capture_storages_.push_back(storage_of(t));
    capture_storage_set_.insert(storage_of(t));
  }
  accept_gradients(captures, watched);
  shares_nothing_ = sharing_.overlaps.empty();
  for (uint32_t i = 0; i < sharing_.same.size(); ++i)
    shares_nothing_ = shares_nothing_ && sharing_.same[i] == i;
}

uint64_t Signature::hash_of(const Tensors& arguments, const Watched& watched, const Modes& modes) {
  uint64_t hash = c10::hash_combine(modes.switches, uint64_t(modes.default_dtype));
  auto add = [&](uint64_t word) { hash = c10::hash_combine(hash, word); };
  for (const at::Tensor& argument : arguments) {
    const TensorKey key(argument);
    add(key.dispatch_keys);
    add(uint64_t(key.dtype) << 2 | uint64_t(key.requires_grad) << 1 | uint64_t(key.leaf));
    for (int64_t size : key.sizes) add(uint64_t(size));
    for (int64_t stride : key.strides) add(uint64_t(stride));
  }
  for (const torch::nn::Module* module : watched.modules) add(module->is_training());
  for (uint64_t word : watched.state) add(word);
  return hash;
}

void Signature::accept_gradients(const Tensors& captures, const Watched& watched) {
  gradients_.push_back(gradients_of(captures, watched));
}

bool Signature::matches(const Tensors& arguments, const Tensors& captures, const Watched& watched,
                        const Modes& modes) const {
  return matches_but_for_gradients(arguments, captures, watched, modes) &&
         has_seen_gradients(captures, watched);
}

/// The usual call has those of the last way, and they are compared where they stand.
bool Signature::has_seen_gradients(const Tensors& captures, const Watched& watched) const {
  auto is_this_way = [&](const std::vector<bool>& way) {
    size_t next = watched.gradients.size();
    if (!std::equal(watched.gradients.begin(), watched.gradients.end(), way.begin())) return false;
    return std::all_of(captures.begin(), captures.end(),
                       [&](const at::Tensor& capture) { return has_gradient(capture) == way[next++]; });
  };
  return std::any_of(gradients_.rbegin(), gradients_.rend(), is_this_way);
}

bool Signature::matches_but_for_gradients(const Tensors& arguments, const Tensors& captures,
                                          const Watched& watched, const Modes& modes) const {
  if (arguments.size() != arguments_.size() || !(modes == modes_)) return false;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!arguments_[i].matches(arguments[i], offsets_matter_)) return false;
  for (size_t i = 0; i < captures.size(); ++i)
    if (!captures_[i].matches(captures[i], offsets_matter_)) return false;
  if (!watched.is_same(watched_)) return false;
  for (size_t i = 0; i < watched.modules.size(); ++i)
    if (watched.modules[i]->is_training() != training_[i]) return false;
  return shares_as_before(arguments, captures);
}

/// The usual call shares nothing and its captures lie where they lay: that can be seen without looking at
/// ranges.
bool Signature::shares_as_before(const Tensors& arguments, const Tensors& captures) const {
  bool surely_apart = shares_nothing_ && arguments.size() <= 8;
  for (size_t i = 0; i < captures.size() && surely_apart; ++i)
    surely_apart = storage_of(captures[i]) == capture_storages_[i];
  for (size_t i = 0; i < arguments.size() && surely_apart; ++i) {
    const auto* storage = storage_of(arguments[i]);
    if (!storage) continue;
    surely_apart = !capture_storage_set_.count(storage);
    for (size_t j = 0; j < i && surely_apart; ++j) surely_apart = storage_of(arguments[j]) != storage;
  }
  return surely_apart || Sharing::of(arguments, captures) == sharing_;
}

std::string Signature::difference(const Tensors& arguments, const Tensors& captures, const Watched& watched,
                                  const std::vector<std::string>& names) const {
  if (arguments.size() != arguments_.size())
    return changed("number of tensors", std::to_string(arguments_.size()), std::to_string(arguments.size()));
  auto named = [&](size_t i) {
    return i < names.size() && !names[i].empty() ? names[i] : "tensor " + std::to_string(i);
  };
  for (size_t i = 0; i < arguments.size(); ++i)
    if (auto what = arguments_[i].difference(arguments[i], offsets_matter_); !what.empty())
      return named(i) + ": " + what;
  for (size_t i = 0; i < captures.size(); ++i)
    if (auto what = captures_[i].difference(captures[i], offsets_matter_); !what.empty())
      return named(arguments.size() + i) + ": " + what;
  if (watched.state != watched_.state) return "a tensor or an option of a watched module is another";
  if (!watched.is_same(watched_)) return "other submodules or parameters than before";
  for (size_t i = 0; i < watched.modules.size(); ++i)
    if (watched.modules[i]->is_training() != training_[i])
      return "module " + watched.modules[i]->name() + ": " +
             (training_[i] ? "train -> eval" : "eval -> train");
  const Modes modes = Modes::now(modes_.arithmetic.has_value());
  if (modes.threads != modes_.threads)
    return changed("number of threads", std::to_string(modes_.threads), std::to_string(modes.threads));
  if (!(modes == modes_))
    return "grad mode, autocast, default dtype, determinism, precision or flushing of denormals changed";
  if (!shares_as_before(arguments, captures)) return "other tensors share memory than before";
  if (!has_seen_gradients(captures, watched)) return "other tensors have gradients than before";
  return "a captured tensor is no longer used by anybody else";
}

}  // namespace tandem
