/// How tensors lie in memory.
#pragma once

#include <tandem/graph.h>

namespace tandem {

/// Whether two tensors of equal sizes step through memory alike; the stride of a dimension of one element does not matter.
bool same_strides(const TensorMeta& a, const TensorMeta& b);

/// Whether elements fill their span of memory without gaps or overlap.
bool is_dense(const TensorMeta& meta);

/// Whether it is plain from the strides that no two elements lie in one place.
bool is_surely_injective(const TensorMeta& meta);

}  // namespace tandem
