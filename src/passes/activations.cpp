#include "passes/formulas.h"

#include <cmath>

namespace tandem {
namespace {

using Step = Value (*)(Formula&, Value x);
using BackwardStep = Value (*)(Formula&, Value gradient, Value x);

bool is_real(const Graph& graph, const Node& node) {
  bool real = true;
  for_each_argument(node, [&](Value v) { real = real && !c10::isComplexType(graph.meta(v).dtype); });
  return real;
}

/// A row whose formula takes the node's first argument.
Decomposition row(const char* name, Step step) {
  return {[step](Graph& graph, const Node& node) -> std::vector<Value> {
            if (!is_real(graph, node)) return {};
            Formula formula(graph, node);
            return {formula.as_result(step(formula, formula.widened(formula.tensor(0))))};
          },
          name, "1"};
}

/// A row whose formula takes the gradient and the tensor at argument `x`.
Decomposition row(const char* name, size_t x, BackwardStep step) {
  return {[x, step](Graph& graph, const Node& node) -> std::vector<Value> {
            if (!is_real(graph, node)) return {};
            Formula formula(graph, node);
            Value gradient = formula.widened(formula.tensor(0));
            return {formula.as_result(step(formula, gradient, formula.widened(formula.tensor(x))))};
          },
          name, "1"};
}

Value elu(Formula& f, Value x) {
  double alpha = f.number(1), scale = f.number(2), input_scale = f.number(3);
  Value below = f.mul(f.apply("aten::expm1", f.mul(x, input_scale)), alpha * scale);
  return f.where(f.compare("aten::le.Scalar", x, 0), below, f.mul(x, scale));
}

Value leaky_relu(Formula& f, Value x) {
  return f.where(f.compare("aten::gt.Scalar", x, 0), x, f.mul(x, f.number(1)));
}

Value hardtanh(Formula& f, Value x) { return f.clamp(x, f.number(1), f.number(2)); }

Value hardsigmoid(Formula& f, Value x) { return f.mul(f.clamp(f.add(x, 3), 0, 6), 1.0 / 6); }

Value hardswish(Formula& f, Value x) { return f.mul(f.mul(x, f.clamp(f.add(x, 3), 0, 6)), 1.0 / 6); }

Value tanh_backward(Formula& f, Value gradient, Value y) { return f.mul(gradient, f.from_one(f.mul(y, y))); }

Value sigmoid_backward(Formula& f, Value gradient, Value y) {
  return f.mul(f.mul(gradient, f.from_one(y)), y);
}

Value threshold_backward(Formula& f, Value gradient, Value x) {
  return f.where(f.compare("aten::le.Scalar", x, f.number(2)), f.scalar(c10::IValue(0.0), gradient),
                 gradient);
}

Value leaky_relu_backward(Formula& f, Value gradient, Value x) {
  return f.where(f.compare("aten::gt.Scalar", x, 0), gradient, f.mul(gradient, f.number(2)));
}

Value hardtanh_backward(Formula& f, Value gradient, Value x) {
  Value outside = f.call("aten::logical_or", {f.compare("aten::le.Scalar", x, f.number(2)),
                                              f.compare("aten::ge.Scalar", x, f.number(3))});
  return f.where(outside, f.scalar(c10::IValue(0.0), gradient), gradient);
}

Value hardsigmoid_backward(Formula& f, Value gradient, Value x) {
  Value inside =
      f.call("aten::logical_and", {f.compare("aten::gt.Scalar", x, -3), f.compare("aten::lt.Scalar", x, 3)});
  // A sixth as libtorch's kernel has it: rounded to float, for doubles too.
  return f.where(inside, f.mul(gradient, double(1.0f / 6)), f.scalar(c10::IValue(0.0), gradient));
}

Value hardswish_backward(Formula& f, Value gradient, Value x) {
  Value slope = f.mul(gradient, f.add(f.mul(x, 1.0 / 3), 0.5));
  Value below_three = f.where(f.compare("aten::lt.Scalar", x, 3), slope, gradient);
  return f.where(f.compare("aten::le.Scalar", x, -3), f.scalar(c10::IValue(0.0), gradient), below_three);
}

Value silu_backward(Formula& f, Value gradient, Value x) {
  Value s = f.apply("aten::sigmoid", x);
  return f.mul(f.mul(gradient, s), f.add(f.mul(x, f.from_one(s)), 1));
}

Value elu_backward(Formula& f, Value gradient, Value x) {
  double alpha = f.number(1), scale = f.number(2), input_scale = f.number(3);
  double below_factor = alpha * scale;
  Value below = f.constant(4).toBool() ? f.mul(f.mul(gradient, input_scale), f.add(x, below_factor))
                                       : f.mul(f.mul(gradient, input_scale * below_factor),
                                               f.apply("aten::exp", f.mul(x, input_scale)));
  return f.where(f.compare("aten::le.Scalar", x, 0), below, f.mul(gradient, scale));
}

/// gradient * (cdf(x) + x * pdf(x)) with the normal distribution's functions.
Value exact_gelu_backward(Formula& f, Value gradient, Value x) {
  Value cdf = f.mul(f.add(f.apply("aten::erf", f.mul(x, M_SQRT1_2)), 1), 0.5);
  Value pdf = f.mul(f.apply("aten::exp", f.mul(f.mul(x, x), -0.5)), 0.5 * M_2_SQRTPI * M_SQRT1_2);
  return f.mul(gradient, f.add(cdf, f.mul(x, pdf)));
}

/// The derivative of 0.5 * x * (1 + tanh(beta * (x + kappa * x^3))).
Value tanh_gelu_backward(Formula& f, Value gradient, Value x) {
  const double beta = M_SQRT2 * M_2_SQRTPI * 0.5, kappa = 0.044715;
  Value square = f.mul(x, x);
  Value t = f.apply("aten::tanh", f.mul(f.add(x, f.mul(f.mul(square, x), kappa)), beta));
  Value outer = f.mul(f.add(t, 1), 0.5);
  Value inner = f.mul(f.add(f.mul(square, 3 * kappa), 1), beta);
  Value chained = f.mul(f.mul(f.mul(x, 0.5), f.from_one(f.mul(t, t))), inner);
  return f.mul(gradient, f.add(outer, chained));
}

Value gelu_backward(Formula& f, Value gradient, Value x) {
  return f.constant(2).toStringRef() == "tanh" ? tanh_gelu_backward(f, gradient, x)
                                               : exact_gelu_backward(f, gradient, x);
}

}  // namespace

void add_activations(DecompositionTable& table) {
  struct {
    const char* op;
    Step step;
  } rows[] = {
      {"aten::elu", elu},
      {"aten::leaky_relu", leaky_relu},
      {"aten::hardtanh", hardtanh},
      {"aten::hardswish", hardswish},
      {"aten::hardsigmoid", hardsigmoid},
  };
  for (const auto& [op, step] : rows) table[op] = row(op, step);
}

void add_activation_backwards(DecompositionTable& table) {
  struct {
    const char* op;
    size_t x;  ///< which argument the derivative is a function of
    BackwardStep step;
  } rows[] = {
      {"aten::gelu_backward", 1, gelu_backward},
      {"aten::leaky_relu_backward", 1, leaky_relu_backward},
      {"aten::sigmoid_backward", 1, sigmoid_backward},
      {"aten::threshold_backward", 1, threshold_backward},
      {"aten::hardtanh_backward", 1, hardtanh_backward},
      {"aten::hardsigmoid_backward", 1, hardsigmoid_backward},
      {"aten::hardswish_backward", 1, hardswish_backward},
      {"aten::tanh_backward", 1, tanh_backward},
      {"aten::silu_backward", 1, silu_backward},
      {"aten::elu_backward", 5, elu_backward},
  };
  for (const auto& [op, x, step] : rows) table[op] = row(op, x, step);
}

}  // namespace tandem
