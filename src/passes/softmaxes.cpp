#include "passes/loop_formulas.h"

#include <cmath>

namespace tandem {
namespace {

std::vector<Value> softmax(LoopFormula& f) {
  Value x = f.tensor(0);
  const Axes axes = f.axes(1, x);
  Value powers = f.apply("aten::exp", f.sub(x, f.largest(x, axes)));
  return {f.div(powers, f.sum(powers, axes))};
}

/// Where nothing is above -infinity libtorch gives zeros.
std::vector<Value> safe_softmax(LoopFormula& f) {
  Value x = f.tensor(0);
  const Axes axes = f.axes(1, x);
  Value largest = f.largest(x, axes), powers = f.apply("aten::exp", f.sub(x, largest));
  Value nothing = f.compare("aten::eq.Scalar", largest, -INFINITY);
  return {f.where(nothing, f.scalar(c10::IValue(0.0), x), f.div(powers, f.sum(powers, axes)))};
}

std::vector<Value> log_softmax(LoopFormula& f) {
  Value x = f.tensor(0);
  const Axes axes = f.axes(1, x);
  Value shifted = f.sub(x, f.largest(x, axes));
  Value total = f.sum(f.apply("aten::exp", shifted), axes);
  return {f.sub(shifted, f.apply("aten::log", total))};
}

std::vector<Value> softmax_backward(LoopFormula& f) {
  Value gradient = f.tensor(0), y = f.tensor(1);
  Value common = f.sum(f.mul(gradient, y), f.axes(2, y));
  return {f.mul(f.sub(gradient, common), y)};
}

std::vector<Value> log_softmax_backward(LoopFormula& f) {
  Value gradient = f.tensor(0), y = f.tensor(1);
  Value total = f.sum(gradient, f.axes(2, y));
  return {f.sub(gradient, f.mul(f.apply("aten::exp", y), total))};
}

std::vector<Value> logsumexp(LoopFormula& f) {
  Value x = f.tensor(0);
  const Axes axes = f.axes(1, x);
  Value largest = f.largest(x, axes);
  // Nothing is gained by the subtraction of an infinity, and a NaN would be made.
  Value infinite = f.compare("aten::eq.Scalar", f.apply("aten::abs", largest), INFINITY);
  Value shift = f.where(infinite, f.scalar(c10::IValue(0.0), x), largest);
  Value total = f.sum(f.apply("aten::exp", f.sub(x, shift)), axes);
  return {f.as_sized(f.add(f.apply("aten::log", total), shift), f.result(0))};
}

constexpr LoopRow softmax_table[] = {
    {"aten::_softmax", softmax},
    {"aten::_safe_softmax", safe_softmax},
    {"aten::_log_softmax", log_softmax},
    {"aten::_softmax_backward_data", softmax_backward},
    {"aten::_log_softmax_backward_data", log_softmax_backward},
    {"aten::logsumexp", logsumexp},
};

}  // namespace

std::span<const LoopRow> softmax_rows() { return softmax_table; }

}  // namespace tandem
