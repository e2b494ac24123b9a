/// What a call must have in common with the one that was traced.
#pragma once

#include <tandem/graph.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/modes.h"

namespace tandem {

/// One tensor as the signature sees it.
struct TensorKey {
  uint64_t dispatch_keys = 0;
  at::ScalarType dtype = at::kFloat;
  c10::Device device = c10::kCPU;
  Dims sizes, strides;
  int64_t offset = 0;
  bool defined = false, requires_grad = false, leaf = false;

  explicit TensorKey(const at::Tensor& tensor);
  bool matches(const at::Tensor& tensor, bool offsets_matter) const;
  /// What is different about `tensor`, or nothing.
  std::string difference(const at::Tensor& tensor, bool offsets_matter) const;
};

/// Which tensors of a call are the same object or overlap in memory.
struct Sharing {
  std::vector<uint32_t> same;  ///< for each, the first one that it is
  std::vector<std::pair<uint32_t, uint32_t>> overlaps;
  static Sharing of(const Tensors& arguments, const Tensors& captures);
  friend bool operator==(const Sharing&, const Sharing&) = default;
};

/// Modules whose train/eval switch, place in the tree and parameters join the signature, all their submodules
/// included.
struct Watched {
  std::vector<const torch::nn::Module*> modules;
  std::vector<const void*> parameters;  ///< their identities
  /// tensors and options that libtorch's own modules keep as members
  std::vector<uint64_t> state;
  std::vector<bool> gradients;  ///< which parameters have one
  /// Whether these are the same modules in the same state, whatever gradients there are.
  bool is_same(const Watched& other) const {
    return modules == other.modules && parameters == other.parameters && state == other.state;
  }
};
/// The modules under `roots` as they are now.
Watched watch_modules(const std::vector<std::shared_ptr<torch::nn::Module>>& roots);

class Signature {
 public:
  Signature() = default;
  Signature(const Tensors& arguments, const Tensors& captures, const Watched& watched, bool offsets_matter,
            const Modes& modes);

  /// A number for what can be said of a call before it is traced: equal for equal calls.
  static uint64_t hash_of(const Tensors& arguments, const Watched& watched, const Modes& modes);

  /// Whether a call with these arguments, in the modes of this thread, is one that was traced.
  bool matches(const Tensors& arguments, const Tensors& captures, const Watched& watched,
               const Modes& modes) const;
  /// The same but for which leaves have gradients: a program may look for them, or clear them.
  bool matches_but_for_gradients(const Tensors& arguments, const Tensors& captures, const Watched& watched,
                                 const Modes& modes) const;
  /// From now on a call with these gradients matches too.
  void accept_gradients(const Tensors& captures, const Watched& watched);
  /// In words, what is different; names are those of arguments, then captures.
  std::string difference(const Tensors& arguments, const Tensors& captures, const Watched& watched,
                         const std::vector<std::string>& names) const;

 private:
  bool has_seen_gradients(const Tensors& captures, const Watched& watched) const;
  bool shares_as_before(const Tensors& arguments, const Tensors& captures) const;

  Modes modes_;
  std::vector<TensorKey> arguments_, captures_;
  /// which captured and watched leaves may have one: the ways that match
  std::vector<std::vector<bool>> gradients_;
  Watched watched_;  ///< compared, never followed
  std::vector<bool> training_;
  Sharing sharing_;
  bool shares_nothing_ = true;
  bool offsets_matter_ = false;
  std::vector<const c10::StorageImpl*> capture_storages_;
  std::unordered_set<const c10::StorageImpl*> capture_storage_set_;
};

}  // namespace tandem
