#include "loops/expressions.h"

#include <algorithm>

namespace tandem::loops {

std::optional<Type> type_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kBool:
      return Type::Bool;
    case at::kByte:
      return Type::U8;
    case at::kChar:
      return Type::I8;
    case at::kShort:
      return Type::I16;
    case at::kInt:
      return Type::I32;
    case at::kLong:
      return Type::I64;
    case at::kFloat:
      return Type::F32;
    case at::kDouble:
      return Type::F64;
    default:
      return std::nullopt;
  }
}

bool is_real(Type type) { return type == Type::F32 || type == Type::F64; }

int32_t Expressions::number(double value, Type type) { return number(c10::Scalar(value), type); }

int32_t Expressions::number(const c10::Scalar& value, Type type) {
  Number number;
  if (is_real(type))
    number.real = value.toDouble();
  else if (type == Type::Bool)
    number.integer = value.toDouble() != 0;
  else
    number.integer = value.isIntegral(true) ? value.toLong() : int64_t(value.toDouble());
  numbers_.push_back(number);
  return add(Op::Number, type, int32_t(numbers_.size()) - 1);
}

int32_t Expressions::cast(int32_t a, Type to) { return type(a) == to ? a : add(Op::Cast, to, a); }

int32_t Expressions::add(Op op, Type type, int32_t a, int32_t b, int32_t c) {
  // They are few, and drafted many times: to look through them is faster than to keep a table of them.
  const Expr expr{op, type, a, b, c};
  const auto known = std::find(all_.begin(), all_.end(), expr);
  if (known != all_.end()) return int32_t(known - all_.begin());
  all_.push_back(expr);
  return int32_t(all_.size()) - 1;
}

const at::Tensor* held_by(const Operand& argument) {
  auto* constant = std::get_if<c10::IValue>(&argument);
  return constant && constant->isTensor() ? &constant->toTensor() : nullptr;
}

bool is_number(const at::Tensor& held) {
  return held.defined() && held.numel() == 1 && held.device().is_cpu() && type_of(held.scalar_type());
}

int32_t held_number(Expressions& expressions, const Operand& argument) {
  const at::Tensor* held = held_by(argument);
  return held ? expressions.number(held->item(), *type_of(held->scalar_type())) : -1;
}

}  // namespace tandem::loops
