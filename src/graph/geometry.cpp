#include "graph/geometry.h"

#include <algorithm>

namespace tandem {

bool same_strides(const TensorMeta& a, const TensorMeta& b) {
  for (size_t d = 0; d < a.sizes.size(); ++d)
    if (a.sizes[d] > 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

bool is_dense(const TensorMeta& meta) {
  if (meta.numel() == 0) return true;
  c10::SmallVector<std::pair<int64_t, int64_t>, 5> dims;
  for (size_t d = 0; d < meta.sizes.size(); ++d)
    if (meta.sizes[d] != 1) dims.emplace_back(meta.strides[d], meta.sizes[d]);
  std::sort(dims.begin(), dims.end());
  int64_t expected = 1;
  for (auto [stride, size] : dims) {
    if (stride != expected) return false;
    expected *= size;
  }
  return true;
}

bool is_surely_injective(const TensorMeta& meta) {
  if (meta.numel() == 0) return true;
  c10::SmallVector<std::pair<int64_t, int64_t>, 5> dims;
  for (size_t d = 0; d < meta.sizes.size(); ++d)
    if (meta.sizes[d] != 1) dims.emplace_back(meta.strides[d], meta.sizes[d]);
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (auto [stride, size] : dims) {
    if (stride <= reach) return false;
    reach += stride * (size - 1);
  }
  return true;
}

}  // namespace tandem
