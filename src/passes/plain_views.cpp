// Views under the names that say most plainly which element of what they show.
#include "passes/loop_formulas.h"

#include "graph/vocabulary.h"

namespace tandem {
namespace {

std::vector<Value> unsafe_view(LoopFormula& f) { return {f.view(f.tensor(0), f.sizes(f.result(0)))}; }

bool is_contiguous(const TensorMeta& meta) {
  const Dims dense = dense_strides(meta.sizes);
  return at::IntArrayRef(meta.strides) == at::IntArrayRef(dense);
}

/// What functional graphs have where memory was written through a view: mostly all of it, in order.
std::vector<Value> strided(LoopFormula& f) {
  const TensorMeta from = f.meta(f.tensor(0)), to = f.meta(f.result(0));
  if (!is_contiguous(from) || !is_contiguous(to) || from.numel() != to.numel()) return {};
  if (from.offset != 0 || to.offset != 0) return {};
  return {f.view(f.tensor(0), f.sizes(f.result(0)))};
}

std::vector<Value> unsafe_split(LoopFormula& f) {
  return std::get<std::vector<Value>>(
      f.node("aten::split.Tensor", {f.tensor(0), f.constant(1), f.constant(2)}).results[0]);
}

constexpr LoopRow plain_view_table[] = {
    {"aten::_unsafe_view", unsafe_view},
    {"aten::as_strided", strided},
    {"aten::unsafe_split.Tensor", unsafe_split},
};

}  // namespace

std::span<const LoopRow> plain_view_rows() { return plain_view_table; }

}  // namespace tandem
