/// The expressions of a kernel while it is put together: equal ones are one.
#pragma once

#include <tandem/graph.h>

#include "loops/kernel.h"

#include <ATen/core/Tensor.h>

#include <optional>

namespace tandem::loops {

/// The type of a tensor's elements; nothing where loops do not know it.
std::optional<Type> type_of(at::ScalarType dtype);
bool is_real(Type type);

class Expressions {
 public:
  int32_t load(int32_t buffer, Type type) { return add(Op::Load, type, buffer); }
  int32_t offset(int32_t buffer, Type type) { return add(Op::Offset, type, buffer); }
  /// Numbers are never one, though they be equal: at another size they may differ.
  int32_t number(double value, Type type);
  int32_t number(const c10::Scalar& value, Type type);
  int32_t cast(int32_t a, Type type);
  int32_t unary(Op op, int32_t a) { return add(op, type(a), a); }
  int32_t binary(Op op, int32_t a, int32_t b) { return add(op, type(a), a, b); }
  int32_t compare(Op op, int32_t a, int32_t b) { return add(op, Type::Bool, a, b); }
  int32_t select(int32_t condition, int32_t yes, int32_t no) {
    return add(Op::Select, type(yes), condition, yes, no);
  }
  int32_t fold(Op op, int32_t a) { return add(op, type(a), a); }
  Type type(int32_t a) const { return all_[size_t(a)].type; }

  const std::vector<Expr>& all() const { return all_; }
  const std::vector<Number>& numbers() const { return numbers_; }

 private:
  int32_t add(Op op, Type type, int32_t a, int32_t b = -1, int32_t c = -1);

  std::vector<Expr> all_;
  std::vector<Number> numbers_;
};

/// A tensor that the graph itself holds as an argument, as it does numbers of Python's; else null.
const at::Tensor* held_by(const Operand& argument);
bool is_number(const at::Tensor& held);
/// -1 where the argument is no such number.
int32_t held_number(Expressions& expressions, const Operand& argument);

}  // namespace tandem::loops
