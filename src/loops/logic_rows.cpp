#include "loops/pointwise_table.h"

namespace tandem::loops {
namespace {

/// Operands of two types meet in a third, which only libtorch's rules tell: of these the result says nothing.
template <Op op>
Made comparison(const Lowering& l) {
  const Type type = l.e.type(l.tensor(0));
  if (l.has_tensor(1)) {
    if (l.e.type(l.tensor(1)) != type) return std::nullopt;
  } else if (!is_real(type) && !l.constant(1).toScalar().isIntegral(true)) {
    return std::nullopt;
  }
  return l.e.compare(op, l.tensor(0), l.any(1, type));
}

template <Op op>
Made logical(const Lowering& l) {
  return l.e.binary(op, l.tensor(0, Type::Bool), l.tensor(1, Type::Bool));
}
Made logical_not(const Lowering& l) { return l.e.unary(Op::Not, l.tensor(0, Type::Bool)); }

template <Op op>
Made bitwise(const Lowering& l) {
  if (is_of_floats(l)) return std::nullopt;
  return l.e.binary(op, l.any(0, l.type()), l.any(1, l.type()));
}
Made bitwise_not(const Lowering& l) {
  if (is_of_floats(l)) return std::nullopt;
  return l.e.unary(Op::Not, l.tensor(0, l.type()));
}

Made is_nan(const Lowering& l) { return l.e.compare(Op::Ne, l.tensor(0), l.tensor(0)); }

/// One select, which keeps NaN as it is.
Made relu(const Lowering& l) {
  if (l.type() == Type::Bool) return std::nullopt;
  const int32_t x = l.tensor(0, l.type()), zero = l.literal(0, l.type());
  return l.e.select(l.e.compare(Op::Le, x, zero), zero, x);
}

Made threshold_backward(const Lowering& l) {
  const Type type = l.e.type(l.tensor(1));
  const int32_t is_below = l.e.compare(Op::Le, l.tensor(1), l.number(2, type));
  return l.e.select(is_below, l.literal(0, l.type()), l.tensor(0, l.type()));
}

Made where(const Lowering& l) {
  return l.e.select(l.tensor(0, Type::Bool), l.tensor(1, l.type()), l.tensor(2, l.type()));
}
Made masked_fill(const Lowering& l) {
  return l.e.select(l.tensor(1, Type::Bool), l.any(2, l.type()), l.tensor(0, l.type()));
}

Made same(const Lowering& l) { return l.tensor(0, l.type()); }
Made second(const Lowering& l) { return l.tensor(1, l.type()); }

template <size_t number>
Made filled(const Lowering& l) {
  return l.has_tensor(number) ? l.tensor(number, l.type()) : l.number(number, l.type());
}
template <int number>
Made constant(const Lowering& l) {
  return l.literal(number, l.type());
}

constexpr PointwiseRow logic_table[] = {
    {"aten::relu", relu},
    {"aten::eq.Tensor", comparison<Op::Eq>},
    {"aten::eq.Scalar", comparison<Op::Eq>},
    {"aten::ne.Tensor", comparison<Op::Ne>},
    {"aten::ne.Scalar", comparison<Op::Ne>},
    {"aten::lt.Tensor", comparison<Op::Lt>},
    {"aten::lt.Scalar", comparison<Op::Lt>},
    {"aten::le.Tensor", comparison<Op::Le>},
    {"aten::le.Scalar", comparison<Op::Le>},
    {"aten::gt.Tensor", comparison<Op::Gt>},
    {"aten::gt.Scalar", comparison<Op::Gt>},
    {"aten::ge.Tensor", comparison<Op::Ge>},
    {"aten::ge.Scalar", comparison<Op::Ge>},
    {"aten::logical_and", logical<Op::And>},
    {"aten::logical_or", logical<Op::Or>},
    {"aten::logical_xor", logical<Op::Xor>},
    {"aten::logical_not", logical_not},
    {"aten::bitwise_and.Tensor", bitwise<Op::And>},
    {"aten::bitwise_or.Tensor", bitwise<Op::Or>},
    {"aten::bitwise_xor.Tensor", bitwise<Op::Xor>},
    {"aten::bitwise_not", bitwise_not},
    {"aten::isnan", is_nan},
    {"aten::where.self", where},
    {"aten::masked_fill.Scalar", masked_fill},
    {"aten::masked_fill.Tensor", masked_fill},
    {"aten::threshold_backward", threshold_backward},
    {"aten::clone", same},
    {"aten::_to_copy", same},
    {"aten::copy", second},
    {"aten::fill.Scalar", filled<1>},
    {"aten::fill.Tensor", filled<1>},
    {"aten::full_like", filled<1>},
    {"aten::full", filled<1>},
    {"aten::new_full", filled<2>},
    {"aten::scalar_tensor", filled<0>},
    {"aten::zeros", constant<0>},
    {"aten::zeros_like", constant<0>},
    {"aten::new_zeros", constant<0>},
    {"aten::zero", constant<0>},
    {"aten::ones", constant<1>},
    {"aten::ones_like", constant<1>},
    {"aten::new_ones", constant<1>},
};

}  // namespace

std::span<const PointwiseRow> logic_rows() { return logic_table; }

}  // namespace tandem::loops
