#include "loops/operators.h"

#include <iterator>

namespace tandem::loops {

namespace {

constexpr Operator operator_table[] = {
    {"load", Kind::Leaf, 0, AllTypes},
    {"number", Kind::Leaf, 0, AllTypes},
    {"index", Kind::Leaf, 0, Integers},
    {"offset", Kind::Leaf, 0, Integers},
    {"neg", Kind::Arithmetic, 1, Numeric},
    {"abs", Kind::Arithmetic, 1, Numeric},
    {"not", Kind::Arithmetic, 1, static_cast<Types>(Bools | Integers)},
    {"sqrt", Kind::Arithmetic, 1, Floats},
    {"floor", Kind::Arithmetic, 1, Floats},
    {"ceil", Kind::Arithmetic, 1, Floats},
    {"round", Kind::Arithmetic, 1, Floats},
    {"trunc", Kind::Arithmetic, 1, Floats},
    {"exp", Kind::Arithmetic, 1, Floats},
    {"expm1", Kind::Arithmetic, 1, Floats},
    {"log", Kind::Arithmetic, 1, Floats},
    {"log1p", Kind::Arithmetic, 1, Floats},
    {"tanh", Kind::Arithmetic, 1, Floats},
    {"erf", Kind::Arithmetic, 1, Floats},
    {"sigmoid", Kind::Arithmetic, 1, Floats},
    {"sin", Kind::Arithmetic, 1, Floats},
    {"cos", Kind::Arithmetic, 1, Floats},
    {"add", Kind::Arithmetic, 2, Numeric},
    {"sub", Kind::Arithmetic, 2, Numeric},
    {"mul", Kind::Arithmetic, 2, Numeric},
    {"div", Kind::Arithmetic, 2, Floats},
    {"max", Kind::Arithmetic, 2, AllTypes},
    {"min", Kind::Arithmetic, 2, AllTypes},
    {"and", Kind::Arithmetic, 2, static_cast<Types>(Bools | Integers)},
    {"or", Kind::Arithmetic, 2, static_cast<Types>(Bools | Integers)},
    {"xor", Kind::Arithmetic, 2, static_cast<Types>(Bools | Integers)},
    {"eq", Kind::Comparison, 2, AllTypes},
    {"ne", Kind::Comparison, 2, AllTypes},
    {"lt", Kind::Comparison, 2, AllTypes},
    {"le", Kind::Comparison, 2, AllTypes},
    {"gt", Kind::Comparison, 2, AllTypes},
    {"ge", Kind::Comparison, 2, AllTypes},
    {"cast", Kind::Cast, 1, AllTypes},
    {"select", Kind::Select, 3, AllTypes},
    {"reduce_sum", Kind::Fold, 1, Numeric},
    {"reduce_product", Kind::Fold, 1, Numeric},
    {"reduce_max", Kind::Fold, 1, AllTypes},
    {"reduce_min", Kind::Fold, 1, AllTypes},
};
static_assert(std::size(operator_table) == operator_count);

constexpr std::array<const char*, type_count> type_names = {"bool", "u8",  "i8",  "i16",
                                                            "i32",  "i64", "f32", "f64"};

}  // namespace

const Operator& operator_of(Op op) { return operator_table[static_cast<size_t>(op)]; }

const char* name_of(Type type) { return type_names[static_cast<size_t>(type)]; }

Types kind_of(Type type) {
  if (type == Type::Bool) return Bools;
  return type < Type::F32 ? Integers : Floats;
}

}  // namespace tandem::loops
