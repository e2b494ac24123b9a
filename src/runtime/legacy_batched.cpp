// libtorch has two kinds of vmap, whose headers cannot be read together.
#include <ATen/LegacyBatchedTensorImpl.h>

#include "runtime/batched.h"

namespace tandem {

std::optional<Hidden> hidden_by_legacy_vmap(const at::Tensor& tensor) {
  auto* batched = at::maybeGetBatchedImpl(tensor);
  if (!batched) return std::nullopt;
  const at::BatchDim last = batched->bdims().back();
  at::BatchDims others;
  for (const at::BatchDim& other : batched->bdims().slice(0, batched->bdims().size() - 1))
    others.emplace_back(other.level(), other.dim() - (other.dim() > last.dim()));
  auto row = [value = batched->value(), dim = last.dim(), others](int64_t index) {
    at::Tensor selected = value.select(dim, index);
    return others.empty() ? selected : at::makeBatched(selected, others);
  };
  return Hidden{last.level(), batched->value().size(last.dim()), row};
}

at::Tensor hide_from_legacy_vmap(const at::Tensor& stacked, int64_t level) {
  return at::addBatchDim(stacked, level, 0);
}

}  // namespace tandem
