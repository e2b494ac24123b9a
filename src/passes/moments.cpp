#include "passes/norm_formulas.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

struct Moments {
  Value variance, mean;  ///< the dimensions folded are kept
};

/// Sums of squares are divided by the number of elements less the correction, and by no less than 0.
Moments moments(LoopFormula& f) {
  Value x = f.tensor(0);
  const Axes axes = f.axes(1, x);
  const double correction = f.constant(2).isNone() ? 1 : f.number(2);
  Value mean = f.mean(x, axes), squares = f.square(f.sub(x, mean));
  const double divisor = std::max(double(f.extent(x, axes)) - correction, 0.0);
  return {f.div(f.sum(squares, axes), divisor), mean};
}

std::vector<Value> variance(LoopFormula& f) { return {f.as_sized(moments(f).variance, f.result(0))}; }

std::vector<Value> deviation(LoopFormula& f) {
  return {f.as_sized(f.apply("aten::sqrt", moments(f).variance), f.result(0))};
}

std::vector<Value> variance_and_mean(LoopFormula& f) {
  auto [variance, mean] = moments(f);
  return {f.as_sized(variance, f.result(0)), f.as_sized(mean, f.result(1))};
}

std::vector<Value> deviation_and_mean(LoopFormula& f) {
  auto [variance, mean] = moments(f);
  return {f.as_sized(f.apply("aten::sqrt", variance), f.result(0)), f.as_sized(mean, f.result(1))};
}

std::vector<Value> norm_of_order(LoopFormula& f, double order, const Axes& axes) {
  Value x = f.tensor(0), norm;
  if (order == 2) norm = f.apply("aten::sqrt", f.sum(f.square(x), axes));
  if (order == 1) norm = f.sum(f.apply("aten::abs", x), axes);
  if (order == 0) norm = f.sum(f.as_result(f.compare("aten::ne.Scalar", x, 0)), axes);
  if (order == INFINITY) norm = f.largest(f.apply("aten::abs", x), axes);
  if (order == -INFINITY) norm = f.smallest(f.apply("aten::abs", x), axes);
  if (!norm) return {};
  return {f.as_sized(norm, f.result(0))};
}

double order_of(LoopFormula& f) { return f.constant(1).isNone() ? 2 : f.number(1); }

std::vector<Value> norm_along(LoopFormula& f) {
  return norm_of_order(f, order_of(f), f.axes(2, f.tensor(0)));
}

std::vector<Value> norm_of_all(LoopFormula& f) {
  return norm_of_order(f, order_of(f), axes_between(0, f.rank(f.tensor(0))));
}

std::vector<Value> largest(LoopFormula& f) {
  Value x = f.tensor(0);
  return {f.as_sized(f.largest(x, axes_between(0, f.rank(x))), f.result(0))};
}

std::vector<Value> smallest(LoopFormula& f) {
  Value x = f.tensor(0);
  return {f.as_sized(f.smallest(x, axes_between(0, f.rank(x))), f.result(0))};
}

/// An extreme along a dimension, and where its first element is, which loops look for side by side: among few
/// elements, or in few rows for many threads, libtorch finds both faster at once.
std::vector<Value> with_place(LoopFormula& f, Value (LoopFormula::*extreme)(Value, const Axes&),
                              const char* place_of) {
  constexpr int64_t few_elements = 8, few_rows = 256, is_small = 32768;
  Value x = f.tensor(0);
  const Axes axes = f.axes(1, x);
  const int64_t all = f.meta(x).numel(), folded = f.extent(x, axes);
  if (folded < few_elements || (all / folded < few_rows && all >= is_small)) return {};
  Value place = f.call(place_of, {x, f.constant(1), c10::IValue(true)});
  return {f.as_sized((f.*extreme)(x, axes), f.result(0)), f.as_sized(place, f.result(1))};
}

std::vector<Value> largest_along(LoopFormula& f) {
  return with_place(f, &LoopFormula::largest, "aten::argmax");
}

std::vector<Value> smallest_along(LoopFormula& f) {
  return with_place(f, &LoopFormula::smallest, "aten::argmin");
}

constexpr LoopRow moment_table[] = {
    {"aten::var.correction", variance},
    {"aten::std.correction", deviation},
    {"aten::var_mean.correction", variance_and_mean},
    {"aten::std_mean.correction", deviation_and_mean},
    {"aten::linalg_vector_norm", norm_along},
    {"aten::norm.ScalarOpt_dim", norm_along},
    {"aten::norm.Scalar", norm_of_all},
    {"aten::max", largest},
    {"aten::min", smallest},
    {"aten::max.dim", largest_along},
    {"aten::min.dim", smallest_along},
};

}  // namespace

std::span<const LoopRow> moment_rows() { return moment_table; }

}  // namespace tandem
