#include "passes/loop_formulas.h"

#include <ATen/core/Reduction.h>

namespace tandem {
namespace {

/// The losses of all elements made what argument `reduction` asks for.
std::vector<Value> reduced(LoopFormula& f, Value losses, size_t reduction) {
  const int64_t how = f.constant(reduction).toInt();
  const Axes axes = axes_between(0, f.rank(losses));
  if (how == at::Reduction::Mean) losses = f.mean(losses, axes);
  if (how == at::Reduction::Sum) losses = f.sum(losses, axes);
  return {f.as_sized(losses, f.result(0))};
}

/// The gradient of each element's loss, the means taken into account: arguments 0 to 3 of every backward are
/// the gradient, the input, the target and the reduction.
Value gradient_of_each(LoopFormula& f) {
  if (f.constant(3).toInt() != at::Reduction::Mean) return f.tensor(0);
  return f.div(f.tensor(0), double(f.meta(f.tensor(1)).numel()));
}

/// An input or a target in the dtype of the losses: masks cannot be subtracted.
Value number_of(LoopFormula& f, size_t i) { return f.cast(f.tensor(i), f.meta(f.result(0)).dtype); }

/// Broadcast inputs take sums of gradients, which the operators leave to others.
bool broadcasts(LoopFormula& f) {
  return f.meta(f.tensor(1)).sizes != f.meta(f.tensor(2)).sizes ||
         f.meta(f.tensor(1)).sizes != f.meta(f.result(0)).sizes;
}

std::vector<Value> mse_loss(LoopFormula& f) {
  return reduced(f, f.square(f.sub(number_of(f, 0), number_of(f, 1))), 2);
}

std::vector<Value> mse_loss_backward(LoopFormula& f) {
  if (broadcasts(f)) return {};
  return {f.mul(f.sub(number_of(f, 1), number_of(f, 2)), f.mul(gradient_of_each(f), 2))};
}

std::vector<Value> smooth_l1_loss(LoopFormula& f) {
  const double beta = f.number(3);
  if (beta <= 0) return {};
  Value apart = f.apply("aten::abs", f.sub(number_of(f, 0), number_of(f, 1)));
  Value curve = f.div(f.mul(f.square(apart), 0.5), beta), line = f.add(apart, -0.5 * beta);
  return reduced(f, f.where(f.compare("aten::lt.Scalar", apart, beta), curve, line), 2);
}

std::vector<Value> smooth_l1_loss_backward(LoopFormula& f) {
  const double beta = f.number(4);
  if (beta <= 0 || broadcasts(f)) return {};
  Value slope = f.clamp(f.div(f.sub(number_of(f, 1), number_of(f, 2)), beta), -1, 1);
  return {f.mul(slope, gradient_of_each(f))};
}

std::vector<Value> huber_loss(LoopFormula& f) {
  const double delta = f.number(3);
  Value apart = f.apply("aten::abs", f.sub(number_of(f, 0), number_of(f, 1)));
  Value curve = f.mul(f.square(apart), 0.5), line = f.mul(f.add(apart, -0.5 * delta), delta);
  return reduced(f, f.where(f.compare("aten::le.Scalar", apart, delta), curve, line), 2);
}

std::vector<Value> huber_loss_backward(LoopFormula& f) {
  const double delta = f.number(4);
  if (broadcasts(f)) return {};
  Value slope = f.clamp(f.sub(number_of(f, 1), number_of(f, 2)), -delta, delta);
  return {f.mul(slope, gradient_of_each(f))};
}

/// -log(sigmoid(x)), and no power of anything positive in it.
Value loss_of_true(LoopFormula& f, Value x) {
  Value power = f.apply("aten::exp", f.apply("aten::neg", f.apply("aten::abs", x)));
  return f.add(f.apply("aten::log1p", power), f.at_least(f.apply("aten::neg", x), 0));
}

std::vector<Value> cross_entropy_of_logits(LoopFormula& f) {
  Value x = f.tensor(0), target = number_of(f, 1), weight = f.tensor(2), positive_weight = f.tensor(3);
  Value losses = loss_of_true(f, x);
  if (positive_weight) losses = f.mul(losses, f.add(f.mul(f.add(positive_weight, -1), target), 1));
  losses = f.add(f.mul(f.from_one(target), x), losses);
  return reduced(f, f.times(losses, weight), 4);
}

/// libtorch bounds both logarithms, so that a probability of 0 has a finite loss, and fails of what is none.
std::vector<Value> cross_entropy(LoopFormula& f) {
  Value x = f.tensor(0), target = number_of(f, 1);
  Value inside =
      f.call("aten::logical_and", {f.compare("aten::ge.Scalar", x, 0), f.compare("aten::le.Scalar", x, 1)});
  f.node("aten::_assert_async.msg",
         {f.apply("aten::all", inside), c10::IValue("all elements of input should be between 0 and 1")});
  Value of_true = f.at_least(f.apply("aten::log", x), -100);
  Value of_false = f.at_least(f.apply("aten::log1p", f.apply("aten::neg", x)), -100);
  Value losses = f.sub(f.mul(f.add(target, -1), of_false), f.mul(target, of_true));
  return reduced(f, f.times(losses, f.tensor(2)), 3);
}

/// Bounded likewise, by libtorch's number, which is rounded to float for doubles too.
std::vector<Value> cross_entropy_backward(LoopFormula& f) {
  Value gradient = f.tensor(0), x = f.tensor(1), target = number_of(f, 2);
  Value slope = f.div(f.sub(x, target), f.at_least(f.mul(f.from_one(x), x), 1e-12f));
  Value made = f.times(f.mul(gradient, slope), f.tensor(3));
  const bool is_mean = f.constant(4).toInt() == at::Reduction::Mean;
  return {is_mean ? f.div(made, double(f.meta(x).numel())) : made};
}

constexpr LoopRow loss_table[] = {
    {"aten::mse_loss", mse_loss},
    {"aten::mse_loss_backward", mse_loss_backward},
    {"aten::smooth_l1_loss", smooth_l1_loss},
    {"aten::smooth_l1_loss_backward", smooth_l1_loss_backward},
    {"aten::huber_loss", huber_loss},
    {"aten::huber_loss_backward", huber_loss_backward},
    {"aten::binary_cross_entropy_with_logits", cross_entropy_of_logits},
    {"aten::binary_cross_entropy", cross_entropy},
    {"aten::binary_cross_entropy_backward", cross_entropy_backward},
};

}  // namespace

std::span<const LoopRow> loss_rows() { return loss_table; }

}  // namespace tandem
