/// What differs between the versions of libtorch that we build against, found by feature.
#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <cstring>
#include <memory>
#include <type_traits>

namespace tandem {

/// How libtorch holds a node of its autograd graph: a std::shared_ptr in some versions, a c10::intrusive_ptr
/// in others.
using NodePtr = decltype(torch::autograd::Edge::function);

using WeakNodePtr =
    std::conditional_t<std::is_same_v<NodePtr, std::shared_ptr<torch::autograd::Node>>,
                       std::weak_ptr<torch::autograd::Node>, c10::weak_intrusive_ptr<torch::autograd::Node>>;

template <class T, class... Arguments>
auto make_node(Arguments&&... arguments) {
  if constexpr (std::is_same_v<NodePtr, std::shared_ptr<torch::autograd::Node>>) {
    // Long chains of nodes must not be deleted recursively; libtorch's own deleter sees to that.
    return std::shared_ptr<T>(new T(std::forward<Arguments>(arguments)...),
                              [](auto* node) { deleteNode(node); });
  } else {
    return c10::make_intrusive<T>(std::forward<Arguments>(arguments)...);
  }
}

/// The reference that a host language's object for a tensor has on it, where nobody but the tensor itself
/// keeps that object; of a tensor that has other owners.
inline size_t references_of_wrapper(const c10::TensorImpl& impl) {
  return [](const auto& slot) -> size_t {
    if constexpr (requires { slot.has_unique_reference(); })
      return slot.has_unique_reference();
    else
      return 0;
  }(*impl.pyobj_slot());
}

/// How many writes libtorch has counted; none of inference tensors.
inline uint32_t version_of(const at::Tensor& tensor) { return tensor.is_inference() ? 0 : tensor._version(); }

/// Whether a write to one of them counts as a write to the other. The counter is one pointer that libtorch
/// shows to nobody.
inline bool have_one_version(const at::Tensor& a, const at::Tensor& b) {
  const c10::VariableVersion &first = a.unsafeGetTensorImpl()->version_counter(),
                             &second = b.unsafeGetTensorImpl()->version_counter();
  static_assert(sizeof(c10::VariableVersion) == sizeof(void*));
  return std::memcmp(static_cast<const void*>(&first), static_cast<const void*>(&second), sizeof(void*)) == 0;
}

}  // namespace tandem
