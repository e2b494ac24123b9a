#include "passes/loop_formulas.h"

#include <cmath>

namespace tandem {
namespace {

std::vector<Value> gelu(LoopFormula& f) {
  const double beta = M_SQRT2 * M_2_SQRTPI * 0.5, kappa = 0.044715;
  Value x = f.tensor(0), share;
  if (f.constant(1).toStringRef() == "tanh")
    share = f.apply("aten::tanh", f.mul(f.add(x, f.mul(f.mul(f.square(x), x), kappa)), beta));
  else
    share = f.apply("aten::erf", f.mul(x, M_SQRT1_2));
  return {f.mul(f.mul(x, 0.5), f.add(share, 1))};
}

std::vector<Value> silu(LoopFormula& f) {
  return {f.mul(f.tensor(0), f.apply("aten::sigmoid", f.tensor(0)))};
}

std::vector<Value> softplus(LoopFormula& f) {
  const double beta = f.number(1), threshold = f.number(2);
  Value x = f.tensor(0), scaled = f.mul(x, beta);
  Value curve = f.div(f.apply("aten::log1p", f.apply("aten::exp", scaled)), beta);
  return {f.where(f.compare("aten::gt.Scalar", scaled, threshold), x, curve)};
}

std::vector<Value> softplus_backward(LoopFormula& f) {
  Value gradient = f.tensor(0), scaled = f.mul(f.tensor(1), f.number(2));
  return {f.where(f.compare("aten::gt.Scalar", scaled, f.number(3)), gradient,
                  f.mul(gradient, f.apply("aten::sigmoid", scaled)))};
}

std::vector<Value> log_sigmoid(LoopFormula& f) {
  Value x = f.tensor(0), power = f.apply("aten::exp", f.apply("aten::neg", f.apply("aten::abs", x)));
  return {f.sub(f.at_most(x, 0), f.apply("aten::log1p", power)), power};
}

/// The forward's second result is left alone, so that nobody has to keep it.
std::vector<Value> log_sigmoid_backward(LoopFormula& f) {
  return {f.mul(f.tensor(0), f.apply("aten::sigmoid", f.apply("aten::neg", f.tensor(1))))};
}

Value tanh_of_softplus(LoopFormula& f, Value x) {
  return f.apply("aten::tanh", f.apply("aten::log1p", f.apply("aten::exp", x)));
}

std::vector<Value> mish(LoopFormula& f) { return {f.mul(f.tensor(0), tanh_of_softplus(f, f.tensor(0)))}; }

std::vector<Value> mish_backward(LoopFormula& f) {
  Value x = f.tensor(1), t = tanh_of_softplus(f, x);
  Value slope = f.mul(f.apply("aten::sigmoid", x), f.from_one(f.square(t)));
  return {f.mul(f.tensor(0), f.add(t, f.mul(x, slope)))};
}

constexpr LoopRow smooth_activation_table[] = {
    {"aten::gelu", gelu},
    {"aten::silu", silu},
    {"aten::softplus", softplus},
    {"aten::softplus_backward", softplus_backward},
    {"aten::log_sigmoid_forward", log_sigmoid},
    {"aten::log_sigmoid_backward", log_sigmoid_backward},
    {"aten::mish", mish},
    {"aten::mish_backward", mish_backward},
};

}  // namespace

std::span<const LoopRow> smooth_activation_rows() { return smooth_activation_table; }

}  // namespace tandem
