#include "fuzz/tolerance.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

namespace tandem::fuzz {

namespace {

constexpr Tolerance table[] = {
    // dtype, ulp, times, times_own_error, absolute
    {at::kDouble, 0x1p-52, 16, 4, 0x1p-1060},
    {at::kFloat, 0x1p-23, 16, 4, 0x1p-140},
    {at::kHalf, 0x1p-10, 16, 4, 0x1p-22},
    {at::kBFloat16, 0x1p-7, 16, 4, 0x1p-128},
};

/// As real numbers in a dtype that holds the differences of the original.
at::Tensor widened(const at::Tensor& t) { return (t.is_complex() ? at::view_as_real(t) : t).to(at::kDouble); }

/// Both are one number or no number, counting all NaNs as one, and 0 and -0.
at::Tensor are_same(const at::Tensor& a, const at::Tensor& b) {
  return a.eq(b).logical_or(a.isnan().logical_and(b.isnan()));
}

}  // namespace

const Tolerance* tolerance_of(at::ScalarType dtype) {
  const auto* found = std::find_if(std::begin(table), std::end(table), [&](const Tolerance& row) {
    return row.dtype == c10::toRealValueType(dtype);
  });
  return found == std::end(table) ? nullptr : found;
}

void note_moves(at::Tensor& moves, const at::Tensor& still, const at::Tensor& moved) {
  const double far = std::numeric_limits<double>::infinity();
  at::Tensor now;
  if (tolerance_of(still.scalar_type()) == nullptr) {
    now = at::zeros(still.sizes(), at::kDouble).masked_fill(still.ne(moved), far);
  } else {
    const at::Tensor from = widened(still), to = widened(moved);
    const at::Tensor finite = from.isfinite().logical_and(to.isfinite());
    now = (to - from).abs().masked_fill(finite.logical_not(), far).masked_fill(are_same(from, to), 0);
  }
  moves = moves.defined() ? at::maximum(moves, now) : now;
}

bool is_within(const at::Tensor& want, const at::Tensor& got, const at::Tensor& moves) {
  const at::Tensor free = moves.isinf();
  const Tolerance* row = tolerance_of(want.scalar_type());
  if (row == nullptr) return want.eq(got).logical_or(free).all().item<bool>();
  const at::Tensor x = widened(want), y = widened(got);
  const at::Tensor near = (x - y).abs().le(moves * row->times + row->absolute).logical_and(moves.gt(0));
  return near.logical_or(are_same(x, y)).logical_or(free).all().item<bool>();
}

namespace {

double largest(const at::Tensor& t) {
  return t.numel() == 0 ? 0 : t.masked_fill(t.isfinite().logical_not(), 0).abs().max().item<double>();
}

}  // namespace

bool is_near(const at::Tensor& want, const at::Tensor& got) {
  const Tolerance* row = tolerance_of(want.scalar_type());
  const at::Tensor x = widened(want), y = widened(got);
  if (row == nullptr || x.numel() == 0) return at::equal(x, y);
  const double most = largest(x) * row->ulp * row->times + row->absolute;
  const at::Tensor near = (x - y).abs().le(most);
  return near.logical_or(are_same(x, y)).all().item<bool>();
}

bool is_as_exact(const at::Tensor& exact, const at::Tensor& eager, const at::Tensor& got) {
  const Tolerance* row = tolerance_of(eager.scalar_type());
  const at::Tensor x = widened(exact), y = widened(got);
  if (row == nullptr || x.numel() == 0) return at::equal(widened(eager), y);
  if (!x.isfinite().all().item<bool>() || !y.isfinite().all().item<bool>()) return is_near(eager, got);
  const double own = largest(widened(eager) - x);
  return largest(y - x) <= own * row->times_own_error + largest(x) * row->ulp * row->times + row->absolute;
}

}  // namespace tandem::fuzz
