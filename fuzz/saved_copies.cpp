#include "fuzz/saved_copies.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/engine.h>

#include <set>

namespace tandem::fuzz {

namespace {

/// The whole memory is copied, since kernels round differently for another layout.
at::Tensor copy_of(const at::Tensor& tensor) {
  at::NoGradGuard no_grad;
  if (!tensor.has_storage() || tensor._is_zerotensor()) return tensor.clone();
  const auto elements = int64_t(tensor.storage().nbytes() / tensor.element_size());
  return tensor.as_strided({elements}, {1}, 0)
      .clone()
      .as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

class Saved final : public torch::autograd::SavedVariableHooks {
 public:
  Saved() { alive().insert(this); }
  ~Saved() override { alive().erase(this); }
  static std::set<Saved*>& alive() {
    static auto& all = *new std::set<Saved*>;
    return all;
  }

  void call_pack_hook(const at::Tensor& tensor) override {
    value_ = tensor.detach();
    first_ = copy_of(value_);
    version_ = value_._version();
  }
  at::Tensor call_unpack_hook() override {
    if (!frozen_) notice_writes();
    if (written_) throw std::runtime_error("a value that the backward reads was written by the program");
    return value_;
  }
  void freeze() {
    if (frozen_ || !value_.defined()) return;
    notice_writes();
    frozen_ = true;
    value_ = copy_of(value_);
  }

 private:
  /// A write of nothing, or of sizes and strides alone, changes no value.
  void notice_writes() {
    written_ = written_ || (value_._version() != version_ && !at::equal(value_, first_));
  }

  at::Tensor value_, first_;
  int64_t version_ = 0;
  bool frozen_ = false, written_ = false;
};

/// Hooks on saved values can be set from Python only, through the engine; this engine has them always.
class CopyingEngine final : public torch::autograd::Engine {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return std::make_unique<Saved>();
  }
  static torch::autograd::Engine& instance() {
    static auto& engine = *new CopyingEngine;
    return engine;
  }
};

}  // namespace

SavedCopies::SavedCopies() { torch::autograd::set_default_engine_stub(&CopyingEngine::instance); }
SavedCopies::~SavedCopies() {
  torch::autograd::set_default_engine_stub(&torch::autograd::Engine::get_base_engine);
}

void SavedCopies::freeze() {
  for (Saved* saved : Saved::alive()) saved->freeze();
}

}  // namespace tandem::fuzz
