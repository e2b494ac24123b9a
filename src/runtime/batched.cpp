#include "runtime/batched.h"

#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/ops/stack.h>

namespace tandem {
namespace {

std::optional<Hidden> hidden_by_vmap(const at::Tensor& tensor) {
  auto* batched = at::functorch::maybeGetBatchedImpl(tensor);
  if (!batched) return std::nullopt;
  return Hidden{
      batched->level(), batched->value().size(batched->bdim()),
      [value = batched->value(), dim = batched->bdim()](int64_t index) { return value.select(dim, index); }};
}

std::optional<Hidden> hidden_in(const at::Tensor& tensor, bool is_legacy) {
  if (!tensor.defined()) return std::nullopt;
  return is_legacy ? hidden_by_legacy_vmap(tensor) : hidden_by_vmap(tensor);
}

}  // namespace

std::optional<HiddenBatch> HiddenBatch::of(const Tensors& tensors) {
  std::optional<HiddenBatch> innermost;
  for (bool is_legacy : {false, true})
    for (const at::Tensor& tensor : tensors)
      if (auto hidden = hidden_in(tensor, is_legacy);
          hidden && (!innermost || hidden->level > innermost->level_))
        innermost = HiddenBatch(*hidden, is_legacy);
  return innermost;
}

Tensors HiddenBatch::row(const Tensors& tensors, int64_t index) const {
  Tensors found = tensors;
  for (at::Tensor& tensor : found)
    if (auto hidden = hidden_in(tensor, is_legacy_); hidden && hidden->level == level_)
      tensor = hidden->row(index);
  return found;
}

Tensors HiddenBatch::join(const std::vector<Tensors>& rows) const {
  Tensors joined(rows[0].size());
  for (size_t i = 0; i < joined.size(); ++i) {
    if (!rows[0][i].defined()) continue;
    Tensors all;
    for (const Tensors& row : rows) all.push_back(row[i]);
    const at::Tensor stacked = at::stack(all);
    joined[i] =
        is_legacy_ ? hide_from_legacy_vmap(stacked, level_) : at::functorch::makeBatched(stacked, 0, level_);
  }
  return joined;
}

}  // namespace tandem
