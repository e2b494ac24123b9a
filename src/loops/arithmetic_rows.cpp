#include "loops/pointwise_table.h"

namespace tandem::loops {
namespace {

template <Op op>
Made unary_of_floats(const Lowering& l) {
  if (!is_of_floats(l)) return std::nullopt;
  return l.e.unary(op, l.tensor(0, l.type()));
}

template <Op op>
Made unary(const Lowering& l) {
  if (l.type() == Type::Bool) return std::nullopt;
  return l.e.unary(op, l.tensor(0, l.type()));
}

/// Rounding leaves integers as they are.
template <Op op>
Made rounded(const Lowering& l) {
  return is_of_floats(l) ? unary<op>(l) : Made(l.tensor(0, l.type()));
}

/// Of two operands that may be numbers.
template <Op op>
Made binary(const Lowering& l) {
  if (l.type() == Type::Bool) return std::nullopt;
  return l.e.binary(op, l.any(0, l.type()), l.any(1, l.type()));
}

template <Op op>
Made extreme(const Lowering& l) {
  return l.e.binary(op, l.any(0, l.type()), l.any(1, l.type()));
}

/// The second operand of sums and differences, times alpha.
int32_t scaled_by_alpha(const Lowering& l, int32_t operand) {
  const c10::Scalar alpha = l.constant(2).toScalar();
  return alpha.equal(1) ? operand : l.e.binary(Op::Mul, operand, l.e.number(alpha, l.type()));
}

template <Op op>
Made sum(const Lowering& l) {
  if (l.type() == Type::Bool) return std::nullopt;
  return l.e.binary(op, l.any(0, l.type()), scaled_by_alpha(l, l.any(1, l.type())));
}

Made reversed_difference(const Lowering& l) {
  if (l.type() == Type::Bool) return std::nullopt;
  return l.e.binary(Op::Sub, l.any(1, l.type()), scaled_by_alpha(l, l.tensor(0, l.type())));
}

Made quotient(const Lowering& l) {
  if (!is_of_floats(l)) return std::nullopt;
  return l.e.binary(Op::Div, l.any(0, l.type()), l.any(1, l.type()));
}

int32_t square_of(const Lowering& l) {
  const int32_t x = l.tensor(0, l.type());
  return l.e.binary(Op::Mul, x, x);
}
Made square(const Lowering& l) {
  if (l.type() == Type::Bool) return std::nullopt;
  return square_of(l);
}

int32_t one_over(const Lowering& l, int32_t x) { return l.e.binary(Op::Div, l.literal(1, l.type()), x); }

Made reciprocal(const Lowering& l) {
  if (!is_of_floats(l)) return std::nullopt;
  return one_over(l, l.tensor(0, l.type()));
}
Made reciprocal_root(const Lowering& l) {
  if (!is_of_floats(l)) return std::nullopt;
  return one_over(l, l.e.unary(Op::Sqrt, l.tensor(0, l.type())));
}

/// The powers that libtorch does not leave to pow either.
Made power(const Lowering& l) {
  if (!is_of_floats(l)) return std::nullopt;
  const double exponent = l.constant(1).toScalar().toDouble();
  const int32_t x = l.tensor(0, l.type());
  if (exponent == 1) return x;
  if (exponent == 2) return square_of(l);
  if (exponent == 3) return l.e.binary(Op::Mul, square_of(l), x);
  if (exponent == 0.5) return l.e.unary(Op::Sqrt, x);
  if (exponent == -0.5) return one_over(l, l.e.unary(Op::Sqrt, x));
  if (exponent == -1) return one_over(l, x);
  if (exponent == -2) return one_over(l, square_of(l));
  return std::nullopt;
}

Made clamp(const Lowering& l) {
  int32_t x = l.tensor(0, l.type());
  if (l.type() == Type::Bool) return std::nullopt;
  if (!l.is_none(1)) x = l.e.binary(Op::Max, x, l.any(1, l.type()));
  if (!l.is_none(2)) x = l.e.binary(Op::Min, x, l.any(2, l.type()));
  return x;
}

/// libtorch's difference of two comparisons, of which NaN is neither.
Made sign(const Lowering& l) {
  const Type type = l.type();
  if (type == Type::Bool) return l.tensor(0);
  const int32_t x = l.tensor(0, type), zero = l.literal(0, type);
  return l.e.binary(Op::Sub, l.e.cast(l.e.compare(Op::Lt, zero, x), type),
                    l.e.cast(l.e.compare(Op::Lt, x, zero), type));
}

Made addcmul(const Lowering& l) {
  if (l.type() == Type::Bool) return std::nullopt;
  int32_t product = l.tensor(1, l.type());
  if (!l.constant(3).toScalar().equal(1)) product = l.e.binary(Op::Mul, l.number(3, l.type()), product);
  return l.e.binary(Op::Add, l.tensor(0, l.type()), l.e.binary(Op::Mul, product, l.tensor(2, l.type())));
}
Made addcdiv(const Lowering& l) {
  if (!is_of_floats(l)) return std::nullopt;
  int32_t product = l.tensor(1, l.type());
  if (!l.constant(3).toScalar().equal(1)) product = l.e.binary(Op::Mul, l.number(3, l.type()), product);
  return l.e.binary(Op::Add, l.tensor(0, l.type()), l.e.binary(Op::Div, product, l.tensor(2, l.type())));
}

int32_t one_less(const Lowering& l, int32_t x) { return l.e.binary(Op::Sub, l.literal(1, l.type()), x); }

Made sigmoid_backward(const Lowering& l) {
  const int32_t y = l.tensor(1, l.type());
  return l.e.binary(Op::Mul, l.e.binary(Op::Mul, l.tensor(0, l.type()), one_less(l, y)), y);
}
Made tanh_backward(const Lowering& l) {
  const int32_t y = l.tensor(1, l.type());
  return l.e.binary(Op::Mul, l.tensor(0, l.type()), one_less(l, l.e.binary(Op::Mul, y, y)));
}
Made dropout_backward(const Lowering& l) {
  const int32_t scale = l.e.binary(Op::Mul, l.tensor(1, l.type()), l.number(2, l.type()));
  return l.e.binary(Op::Mul, l.tensor(0, l.type()), scale);
}

constexpr PointwiseRow arithmetic_table[] = {
    {"aten::add.Tensor", sum<Op::Add>},
    {"aten::add.Scalar", sum<Op::Add>},
    {"aten::sub.Tensor", sum<Op::Sub>},
    {"aten::sub.Scalar", sum<Op::Sub>},
    {"aten::rsub.Tensor", reversed_difference},
    {"aten::rsub.Scalar", reversed_difference},
    {"aten::mul.Tensor", binary<Op::Mul>},
    {"aten::mul.Scalar", binary<Op::Mul>},
    {"aten::div.Tensor", quotient},
    {"aten::div.Scalar", quotient},
    {"aten::maximum", extreme<Op::Max>},
    {"aten::minimum", extreme<Op::Min>},
    {"aten::clamp", clamp},
    {"aten::clamp.Tensor", clamp},
    {"aten::clamp_min", extreme<Op::Max>},
    {"aten::clamp_max", extreme<Op::Min>},
    {"aten::neg", unary<Op::Neg>},
    {"aten::abs", unary<Op::Abs>},
    {"aten::sign", sign},
    {"aten::sqrt", unary_of_floats<Op::Sqrt>},
    {"aten::rsqrt", reciprocal_root},
    {"aten::reciprocal", reciprocal},
    {"aten::square", square},
    {"aten::pow.Tensor_Scalar", power},
    {"aten::floor", rounded<Op::Floor>},
    {"aten::ceil", rounded<Op::Ceil>},
    {"aten::round", rounded<Op::Round>},
    {"aten::trunc", rounded<Op::Trunc>},
    {"aten::exp", unary_of_floats<Op::Exp>},
    {"aten::expm1", unary_of_floats<Op::Expm1>},
    {"aten::log", unary_of_floats<Op::Log>},
    {"aten::log1p", unary_of_floats<Op::Log1p>},
    {"aten::tanh", unary_of_floats<Op::Tanh>},
    {"aten::erf", unary_of_floats<Op::Erf>},
    {"aten::sigmoid", unary_of_floats<Op::Sigmoid>},
    {"aten::sin", unary_of_floats<Op::Sin>},
    {"aten::cos", unary_of_floats<Op::Cos>},
    {"aten::addcmul", addcmul},
    {"aten::addcdiv", addcdiv},
    {"aten::sigmoid_backward", sigmoid_backward},
    {"aten::tanh_backward", tanh_backward},
    {"aten::native_dropout_backward", dropout_backward},
};

}  // namespace

std::span<const PointwiseRow> arithmetic_rows() { return arithmetic_table; }

}  // namespace tandem::loops
