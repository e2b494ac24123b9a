#include "shapes/rules/helpers.h"

#include <ATen/ExpandUtils.h>

namespace tandem::rules {
namespace {

using Indices = c10::SmallVector<at::Tensor, 4>;

/// One way of indexing by tensors: which dimensions go, and what comes in their place.
struct Indexing {
  Dims dims;                       ///< indexed, in order
  Indices indices;                 ///< one for each of them
  std::vector<int64_t> broadcast;  ///< the sizes that all indices expand to
};

/// Nothing for masks, whose results have no size of their own, and for calls that libtorch refuses.
std::optional<Indexing> read(const ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  Indexing found;
  at::ArrayRef<c10::IValue> given = call.arguments[1].toListRef();
  if (int64_t(given.size()) > self.dim()) return std::nullopt;
  for (size_t d = 0; d < given.size(); ++d) {
    if (given[d].isNone() || !given[d].toTensor().defined()) continue;
    const at::Tensor& index = given[d].toTensor();
    if (index.scalar_type() != at::kLong && index.scalar_type() != at::kInt) return std::nullopt;
    found.broadcast =
        found.indices.empty() ? index.sizes().vec() : at::infer_size(found.broadcast, index.sizes());
    found.dims.push_back(int64_t(d));
    found.indices.push_back(index);
  }
  bool nothing_asked = std::find(found.broadcast.begin(), found.broadcast.end(), 0) != found.broadcast.end();
  bool nothing_there =
      std::any_of(found.dims.begin(), found.dims.end(), [&](int64_t d) { return self.size(d) == 0; });
  if (found.dims.empty() || (nothing_there && !nothing_asked)) return std::nullopt;
  return found;
}

/// The dimensions of self that stay, either side of those that come in; apart indices put theirs in front.
std::pair<Dims, Dims> dims_around(const ShapeCall& call, const Indexing& indexing) {
  bool together = indexing.dims.back() - indexing.dims.front() + 1 == int64_t(indexing.dims.size());
  Dims before, after;
  for (int64_t d = 0; d < call.tensor(0).dim(); ++d)
    if (std::find(indexing.dims.begin(), indexing.dims.end(), d) == indexing.dims.end())
      (together && d < indexing.dims.front() ? before : after).push_back(d);
  return {before, after};
}

/// As the kernel reads them: of one shape, as 64-bit numbers, on a GPU with strides in common.
Indices prepared(const ShapeCall& call, const Indexing& indexing) {
  Indices expanded;
  for (const at::Tensor& index : indexing.indices) {
    expanded.push_back(index.expand(indexing.broadcast));
    if (index.scalar_type() == at::kInt) expanded.back() = like(expanded.back(), at::kLong);
  }
  bool alike = std::all_of(expanded.begin(), expanded.end(),
                           [&](const at::Tensor& t) { return t.strides() == expanded[0].strides(); });
  if (!call.device.is_cpu() && !alike)
    for (at::Tensor& index : expanded) index = contiguous_like(index);
  return expanded;
}

/// Ones either side; their strides tell TensorIterator something where self has a one there too.
at::Tensor placed(const at::Tensor& index, size_t before, size_t after) {
  Dims sizes(before, 1);
  sizes.append(index.sizes().begin(), index.sizes().end());
  sizes.append(after, 1);
  return index.reshape(sizes);
}

/// TensorIterator runs over self, which stands still along the dimensions that come in, and over the indices,
/// which stand still along the others.
void index(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  auto indexing = read(call);
  if (!indexing) return;
  auto [before, after] = dims_around(call, *indexing);
  Dims sizes, strides;
  auto stay = [&](const Dims& dims) {
    for (int64_t d : dims) sizes.push_back(self.size(d)), strides.push_back(self.stride(d));
  };
  stay(before);
  sizes.append(indexing->broadcast.begin(), indexing->broadcast.end());
  strides.append(indexing->broadcast.size(), 0);
  stay(after);
  Indices operands{make_meta(sizes, strides, self.scalar_type())};
  for (const at::Tensor& t : prepared(call, *indexing))
    operands.push_back(placed(t, before.size(), after.size()));
  call.give(iterated(self.scalar_type(), operands));
}

constexpr Row advanced_indexing_rows[] = {
    {"aten::index.Tensor", index},
    {"aten::_unsafe_index.Tensor", index},
};

}  // namespace

std::span<const Row> advanced_indexing() { return advanced_indexing_rows; }

}  // namespace tandem::rules
