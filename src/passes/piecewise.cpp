// Functions of one element that are made of pieces, and their derivatives.
#include "passes/loop_formulas.h"

#include <cmath>

namespace tandem {
namespace {

Value number(LoopFormula& f, double number, Value like) { return f.scalar(c10::IValue(number), like); }

std::vector<Value> threshold(LoopFormula& f) {
  Value x = f.tensor(0);
  return {f.where(f.compare("aten::le.Scalar", x, f.number(1)), number(f, f.number(2), x), x)};
}

/// Of real numbers.
std::vector<Value> direction(LoopFormula& f) { return {f.apply("aten::sign", f.tensor(0))}; }

std::vector<Value> celu(LoopFormula& f) {
  Value x = f.tensor(0);
  const double alpha = f.number(1);
  Value below = f.mul(f.apply("aten::expm1", f.mul(x, 1 / alpha)), alpha);
  return {f.where(f.compare("aten::le.Scalar", x, 0), below, x)};
}

std::vector<Value> prelu(LoopFormula& f) {
  Value x = f.tensor(0);
  return {f.where(f.compare("aten::gt.Scalar", x, 0), x, f.mul(f.tensor(1), x))};
}

std::vector<Value> prelu_backward(LoopFormula& f) {
  Value gradient = f.tensor(0), x = f.tensor(1), above = f.compare("aten::gt.Scalar", x, 0);
  return {f.where(above, gradient, f.mul(f.tensor(2), gradient)),
          f.where(above, number(f, 0, x), f.mul(x, gradient))};
}

Value is_within(LoopFormula& f, Value x, double bound) {
  return f.compare("aten::le.Scalar", f.apply("aten::abs", x), bound);
}

std::vector<Value> hardshrink(LoopFormula& f) {
  Value x = f.tensor(0);
  return {f.where(is_within(f, x, f.number(1)), number(f, 0, x), x)};
}

std::vector<Value> softshrink(LoopFormula& f) {
  Value x = f.tensor(0);
  return {f.sub(x, f.clamp(x, -f.number(1), f.number(1)))};
}

std::vector<Value> shrink_backward(LoopFormula& f) {
  Value gradient = f.tensor(0);
  return {f.where(is_within(f, f.tensor(1), f.number(2)), number(f, 0, gradient), gradient)};
}

std::vector<Value> glu(LoopFormula& f) {
  Value x = f.tensor(0);
  const int64_t axis = f.axes(1, x).front(), half = f.sizes(x)[axis] / 2;
  auto part = [&](int64_t from) {
    return f.call("aten::slice.Tensor", {x, c10::IValue(axis), c10::IValue(from), c10::IValue(from + half)});
  };
  return {f.mul(part(0), f.apply("aten::sigmoid", part(half)))};
}

/// The mask is one of numbers, or of truth values that count as numbers.
std::vector<Value> dropout_backward(LoopFormula& f) {
  Value mask = f.cast(f.tensor(1), f.meta(f.tensor(0)).dtype);
  return {f.mul(f.tensor(0), f.mul(mask, f.number(2)))};
}

std::vector<Value> fraction(LoopFormula& f) {
  return {f.sub(f.tensor(0), f.apply("aten::trunc", f.tensor(0)))};
}

/// A bound of less than 0 is none.
double bound_of_logit(LoopFormula& f, size_t i) { return f.constant(i).isNone() ? -1 : f.number(i); }

std::vector<Value> logit(LoopFormula& f) {
  Value x = f.tensor(0);
  const double bound = bound_of_logit(f, 1);
  if (bound >= 0) x = f.clamp(x, bound, 1 - bound);
  return {f.apply("aten::log", f.div(x, f.from_one(x)))};
}

std::vector<Value> logit_backward(LoopFormula& f) {
  Value gradient = f.tensor(0), x = f.tensor(1);
  const double bound = bound_of_logit(f, 2), low = std::max(bound, 0.0);
  Value outside = f.call("aten::logical_or",
                         {f.compare("aten::lt.Scalar", x, low), f.compare("aten::gt.Scalar", x, 1 - low)});
  return {f.where(outside, number(f, bound < 0 ? NAN : 0, x), f.div(gradient, f.mul(x, f.from_one(x))))};
}

/// 0 wherever x is, even where the logarithm is infinite; not where it is none.
std::vector<Value> x_log_y(LoopFormula& f) {
  Value x = f.tensor(0), y = f.tensor(1);
  Value is_zero =
      f.call("aten::logical_and", {f.compare("aten::eq.Scalar", x, 0), f.call("aten::eq.Tensor", {y, y})});
  return {f.where(is_zero, number(f, 0, x), f.mul(x, f.apply("aten::log", y)))};
}

/// The larger of both and what the other adds to it; of equal infinities the difference is no number.
std::vector<Value> sum_of_powers(LoopFormula& f) {
  Value a = f.tensor(0), b = f.tensor(1);
  Value larger = f.call("aten::maximum", {a, b});
  Value apart = f.apply("aten::neg", f.apply("aten::abs", f.sub(a, b)));
  Value sum = f.add(larger, f.apply("aten::log1p", f.apply("aten::exp", apart)));
  Value same_infinity =
      f.call("aten::logical_and", {f.call("aten::eq.Tensor", {a, b}), f.apply("aten::isinf", a)});
  return {f.where(same_infinity, a, sum)};
}

constexpr LoopRow piecewise_table[] = {
    {"aten::threshold", threshold},
    {"aten::sgn", direction},
    {"aten::celu", celu},
    {"aten::_prelu_kernel", prelu},
    {"aten::_prelu_kernel_backward", prelu_backward},
    {"aten::hardshrink", hardshrink},
    {"aten::softshrink", softshrink},
    {"aten::hardshrink_backward", shrink_backward},
    {"aten::softshrink_backward", shrink_backward},
    {"aten::glu", glu},
    {"aten::native_dropout_backward", dropout_backward},
    {"aten::_masked_scale", dropout_backward},
    {"aten::frac", fraction},
    {"aten::logit", logit},
    {"aten::logit_backward", logit_backward},
    {"aten::xlogy.Tensor", x_log_y},
    {"aten::logaddexp", sum_of_powers},
};

}  // namespace

std::span<const LoopRow> piecewise_rows() { return piecewise_table; }

}  // namespace tandem
