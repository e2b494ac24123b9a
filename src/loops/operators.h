/// What is known of each operator, as a table.
#pragma once

#include "loops/kernel.h"

#include <array>

namespace tandem::loops {

enum class Kind : uint8_t { Leaf, Arithmetic, Comparison, Cast, Select, Fold };

/// Sets of types, as bits.
enum Types : uint8_t { NoTypes = 0, Bools = 1, Integers = 2, Floats = 4, Numeric = 6, AllTypes = 7 };

struct Operator {
  const char* name;
  Kind kind;
  int32_t operands;  ///< how many of a, b and c are places of expressions
  Types types;       ///< of its operands; of the value where there are none
};

const Operator& operator_of(Op op);

constexpr int32_t operator_count = static_cast<int32_t>(Op::ReduceMin) + 1;
constexpr int32_t type_count = static_cast<int32_t>(Type::F64) + 1;

const char* name_of(Type type);
Types kind_of(Type type);
/// Whether `a` is a buffer.
inline bool names_buffer(const Expr& expr) { return expr.op == Op::Load || expr.op == Op::Offset; }
inline bool is_fold(const Expr& expr) { return operator_of(expr.op).kind == Kind::Fold; }

/// Places of expressions.
struct Operands {
  std::array<int32_t, 3> places;
  int32_t count;
  const int32_t* begin() const { return places.data(); }
  const int32_t* end() const { return begin() + count; }
};

/// Those that it reads.
inline Operands operands(const Expr& expr) {
  return {{expr.a, expr.b, expr.c}, operator_of(expr.op).operands};
}

}  // namespace tandem::loops
