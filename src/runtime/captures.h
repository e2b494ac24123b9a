/// Tensors that a function captured, between its calls.
#pragma once

#include <ATen/core/Tensor.h>

namespace tandem {

/// Held weakly, so that one which the program replaced dies. The gradient that gathers in a leaf is another tensor at each step: it is known by its leaf.
class Capture {
 public:
  explicit Capture(const at::Tensor& tensor) : Capture(tensor, false) {}
  static Capture gradient_of(const at::Tensor& leaf) { return Capture(leaf, true); }

  /// Undefined where there is none now.
  at::Tensor lock() const {
    at::Tensor held = holder();
    return held.defined() && is_gradient_ ? held.unsafeGetTensorImpl()->grad() : held;
  }
  bool is_alive() const { return holder().defined(); }

 private:
  Capture(const at::Tensor& holder, bool is_gradient) : holder_(holder.getIntrusivePtr()), is_gradient_(is_gradient) {}
  at::Tensor holder() const {
    auto impl = holder_.lock();
    return impl ? at::Tensor(std::move(impl)) : at::Tensor();
  }

  c10::weak_intrusive_ptr<c10::TensorImpl> holder_;
  bool is_gradient_;
};

}  // namespace tandem
