/// Tensors that a function captured, between its calls.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

namespace tandem {

/// Held weakly, so that one which the program replaced dies. The gradient that gathers in a leaf is another
/// tensor at each step: it is known by its leaf.
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
  Capture(const at::Tensor& holder, bool is_gradient)
      : holder_(holder.getIntrusivePtr()), is_gradient_(is_gradient) {}
  at::Tensor holder() const {
    auto impl = holder_.lock();
    return impl ? at::Tensor(std::move(impl)) : at::Tensor();
  }

  c10::weak_intrusive_ptr<c10::TensorImpl> holder_;
  bool is_gradient_;
};

/// All of them; nothing where one is not there now.
inline std::optional<std::vector<at::Tensor>> alive(const std::vector<Capture>& captures) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(captures.size());
  for (const Capture& capture : captures) {
    at::Tensor tensor = capture.lock();
    if (!tensor.defined()) return std::nullopt;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace tandem
