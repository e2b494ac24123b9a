/// Many backwards in one, as vmap makes them: is_grads_batched, vectorised Jacobians.
#pragma once

#include <ATen/core/Tensor.h>
#include <tandem/graph.h>

#include <functional>

namespace tandem {

/// A dimension that a vmap hides in a tensor, of its innermost level.
struct Hidden {
  int64_t level, size;
  std::function<at::Tensor(int64_t index)> row;
};

/// Nothing where the tensor has none; for the vmap of is_grads_batched, which is another one than
/// torch.func's.
std::optional<Hidden> hidden_by_legacy_vmap(const at::Tensor& tensor);
/// Hides the first dimension.
at::Tensor hide_from_legacy_vmap(const at::Tensor& stacked, int64_t level);

/// The innermost hidden dimension among the tensors of a call.
class HiddenBatch {
 public:
  /// Nothing where no tensor has one.
  static std::optional<HiddenBatch> of(const Tensors& tensors);

  int64_t size() const { return size_; }
  /// The tensors of one of the calls that the vmap stands for.
  Tensors row(const Tensors& tensors, int64_t index) const;
  /// The results of all of them as one again; a result is undefined in every row or in none.
  Tensors join(const std::vector<Tensors>& rows) const;

 private:
  HiddenBatch(const Hidden& hidden, bool is_legacy)
      : level_(hidden.level), size_(hidden.size), is_legacy_(is_legacy) {}

  int64_t level_, size_;
  bool is_legacy_;
};

}  // namespace tandem
