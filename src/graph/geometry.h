/// How tensors lie in memory.
#pragma once

#include <tandem/graph.h>

namespace tandem {

/// Whether two tensors of equal sizes step through memory alike; the stride of a dimension of one element
/// does not matter.
bool same_strides(at::IntArrayRef sizes, at::IntArrayRef a, at::IntArrayRef b);
bool same_strides(const TensorMeta& a, const TensorMeta& b);

/// Whether elements fill their span of memory without gaps or overlap.
bool is_dense(const TensorMeta& meta);

/// Whether it is plain from the strides that no two elements lie in one place.
bool is_surely_injective(const TensorMeta& meta);

/// Where the elements of a tensor lie in its storage.
struct Placement {
  c10::IntArrayRef sizes, strides;
  int64_t offset = 0, element_bytes = 1;
};
Placement placement_of(const TensorMeta& meta);
Placement placement_of(const at::Tensor& strided);

/// From the first byte to behind the last one; empty for a tensor without elements.
std::pair<int64_t, int64_t> byte_range(const Placement& placement);

/// Whether it is plain that two tensors on one storage have no byte in common: their ranges are apart, or
/// they are boxes beside each other in one grid.
bool surely_apart(const Placement& a, const Placement& b);

/// Whether a write to one of two tensors on one storage is no concern of the other: they are apart, and
/// neither is empty. An empty view has no byte and yet its base's version.
bool surely_strangers(const Placement& a, const Placement& b);

/// Whether two values may have memory in common.
bool may_overlap(const TensorMeta& a, const TensorMeta& b);

}  // namespace tandem
