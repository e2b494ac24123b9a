#include "loops/access.h"

#include <algorithm>
#include <numeric>

namespace tandem::loops {
namespace {

using DimNumbers = c10::SmallVector<int32_t, 5>;

/// Dimensions that lead to other elements, those with the longest steps first; nothing where two of them lead
/// to one element.
std::optional<DimNumbers> dims_by_stride(const TensorMeta& tensor) {
  DimNumbers dims;
  for (size_t k = 0; k < tensor.sizes.size(); ++k)
    if (tensor.sizes[k] > 1) dims.push_back(int32_t(k));
  std::sort(dims.begin(), dims.end(),
            [&](int32_t a, int32_t b) { return tensor.strides[size_t(a)] > tensor.strides[size_t(b)]; });
  int64_t reach = 0;
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
    const int64_t stride = tensor.strides[size_t(*dim)];
    if (stride <= reach) return std::nullopt;
    reach += stride * (tensor.sizes[size_t(*dim)] - 1);
  }
  return dims;
}

/// Looks for the dimension of each loop, and remembers how far the loops so far lead along each.
class Search {
 public:
  Search(const LoopNest& nest, const Access& access, const TensorMeta& tensor)
      : nest_(nest), access_(access), tensor_(tensor), reach_(tensor.sizes.size(), 0) {}

  std::optional<Way> run(std::optional<Split>& split) {
    const auto dims = dims_by_stride(tensor_);
    if (!dims || !find_first(*dims)) return std::nullopt;
    for (size_t loop = 0; loop < nest_.size(); ++loop) {
      const int64_t stride = access_.strides[loop];
      way_.loops.emplace_back();
      if (stride == 0 || nest_[loop].size == 1) continue;
      const int32_t dim = dim_for(stride, *dims);
      if (dim < 0 || !go(loop, dim, stride / tensor_.strides[size_t(dim)], split)) return std::nullopt;
    }
    return way_;
  }

 private:
  bool find_first(const DimNumbers& dims) {
    way_.first.assign(tensor_.sizes.size(), 0);
    int64_t left = access_.offset - tensor_.offset;
    if (left < 0) return false;
    for (int32_t dim : dims) {
      const int64_t index = left / tensor_.strides[size_t(dim)];
      left -= index * tensor_.strides[size_t(dim)];
      if (index >= tensor_.sizes[size_t(dim)]) return false;
      way_.first[size_t(dim)] = reach_[size_t(dim)] = index;
    }
    return left == 0;
  }

  int32_t dim_for(int64_t stride, const DimNumbers& dims) const {
    for (int32_t dim : dims)
      if (tensor_.strides[size_t(dim)] <= stride && stride % tensor_.strides[size_t(dim)] == 0) return dim;
    return -1;
  }

  bool go(size_t loop, int32_t dim, int64_t step, std::optional<Split>& split) {
    const int64_t size = tensor_.sizes[size_t(dim)], steps = nest_[loop].size;
    const int64_t reach = reach_[size_t(dim)] + step * (steps - 1);
    if (reach >= size) {
      const int64_t inner = size % step == 0 ? size / step : 1;
      if (inner > 1 && inner < steps && steps % inner == 0) split = Split{loop, inner};
      return false;
    }
    reach_[size_t(dim)] = reach;
    way_.loops.back() = {dim, step};
    return true;
  }

  const LoopNest& nest_;
  const Access& access_;
  const TensorMeta& tensor_;
  Dims reach_;
  Way way_;
};

}  // namespace

std::optional<Way> way_along(const LoopNest& nest, const Access& access, const TensorMeta& tensor,
                             std::optional<Split>& split) {
  return Search(nest, access, tensor).run(split);
}

bool covers(const LoopNest& nest, const Way& way, const TensorMeta& tensor) {
  for (size_t dim = 0; dim < tensor.sizes.size(); ++dim) {
    if (way.first[dim] != 0) return false;
    std::vector<std::pair<int64_t, int64_t>> steps;  // and how many
    for (size_t loop = 0; loop < nest.size(); ++loop)
      if (way.loops[loop].dim == int32_t(dim)) steps.emplace_back(way.loops[loop].step, nest[loop].size);
    std::sort(steps.begin(), steps.end());
    int64_t reached = 1;
    for (const auto& [step, count] : steps) {
      if (step != reached) return false;
      reached *= count;
    }
    if (reached != tensor.sizes[dim]) return false;
  }
  return true;
}

int64_t elements(const LoopNest& nest, const Access& access) {
  int64_t count = 1;
  for (size_t loop = 0; loop < nest.size(); ++loop)
    if (access.strides[loop] != 0) count *= nest[loop].size;
  return count;
}

void split_loop(Access& access, const Split& split) {
  const int64_t stride = access.strides[split.loop];
  access.strides[split.loop] = stride * split.inner;
  access.strides.insert(access.strides.begin() + int64_t(split.loop) + 1, stride);
}

}  // namespace tandem::loops
