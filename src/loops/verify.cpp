#include "loops/operators.h"

#include <bit>
#include <map>
#include <sstream>
#include <stdexcept>

namespace tandem::loops {

namespace {

template <class... Parts>
void require(bool holds, const Parts&... parts) {
  if (holds) return;
  std::ostringstream sentence;
  sentence << "malformed kernel: ";
  (sentence << ... << parts);
  throw std::invalid_argument(sentence.str());
}

bool is_type(Type type) { return static_cast<int32_t>(type) < type_count; }

bool is_place(int32_t place, size_t count) { return place >= 0 && static_cast<size_t>(place) < count; }

void verify_dimensions(const Kernel& kernel) {
  require(kernel.kept >= 0, "it has ", kernel.kept, " kept dimensions");
  require(kernel.reduced >= 0, "it has ", kernel.reduced, " reduced dimensions");
  require(kernel.numbers >= 0, "it has ", kernel.numbers, " numbers");
  require(kernel.width == 1 ||
              (kernel.width >= 8 && kernel.width <= 64 && std::has_single_bit(uint32_t(kernel.width))),
          "it has ", kernel.width, " lanes, not 1, 8, 16, 32 or 64");
  require(!kernel.lane_kept || kernel.kept > 0, "its lanes are kept, but no dimension is");
  require(kernel.lane_kept || kernel.reduced > 0, "its lanes are reduced, but no dimension is");
  if (!kernel.cut) return;
  require(kernel.kept > 0 && kernel.reduced > 0, "it is cut without a kept and a reduced dimension");
  require(!kernel.lane_kept || kernel.kept > 1, "its lanes are the pieces that it is cut into");
}

void verify_buffer(const Kernel& kernel, size_t place) {
  const Buffer& buffer = kernel.buffers[place];
  require(is_type(buffer.type), "buffer ", place, " has no type");
  require(buffer.lane <= Step::Any, "buffer ", place, " has no step along the lanes");
  require(!buffer.reduced_varies || kernel.reduced > 0, "buffer ", place,
          " varies along reduced dimensions, but there are none");
  require(kernel.lane_kept || buffer.reduced_varies || buffer.lane == Step::Zero, "buffer ", place,
          " varies along the lanes, which are reduced, but not along the reduced dimensions");
}

/// One expression among those before it.
class VerifiedExpr {
 public:
  VerifiedExpr(const Kernel& kernel, size_t place)
      : kernel_(kernel), place_(place), expr_(kernel.exprs[place]) {}

  void verify() const {
    ask(static_cast<int32_t>(expr_.op) < operator_count, "has no operator");
    ask(is_type(expr_.type), "has no type");
    verify_operands();
    switch (facts().kind) {
      case Kind::Leaf:
        return verify_leaf();
      case Kind::Arithmetic:
        return verify_arithmetic();
      case Kind::Comparison:
        return verify_comparison();
      case Kind::Cast:
        return;
      case Kind::Select:
        return verify_select();
      case Kind::Fold:
        return verify_fold();
    }
  }

 private:
  template <class... Parts>
  void ask(bool holds, const Parts&... parts) const {
    require(holds, "%", place_, " ", parts...);
  }

  const Operator& facts() const { return operator_of(expr_.op); }
  Type type_of(int32_t place) const { return kernel_.exprs[place].type; }

  void ask_same(int32_t operand, Type type) const {
    ask(type_of(operand) == type, "(", facts().name, ") takes %", operand, ", of ", name_of(type_of(operand)),
        ", as ", name_of(type));
  }

  void ask_allowed(Type type) const {
    ask(facts().types & kind_of(type), "(", facts().name, ") is not of ", name_of(type));
  }

  void verify_operands() const {
    for (int32_t operand : operands(expr_))
      ask(is_place(operand, place_), "(", facts().name, ") reads %", operand, ", which is not before it");
    const std::array places = {expr_.a, expr_.b, expr_.c};
    for (int32_t i = facts().kind == Kind::Leaf ? 1 : facts().operands; i < 3; ++i)
      ask(places[i] == -1, "(", facts().name, ") has ", places[i], " where it reads nothing");
  }

  void verify_leaf() const {
    if (expr_.op == Op::Load) {
      ask(is_place(expr_.a, kernel_.buffers.size()), "loads buffer ", expr_.a, ", which is not there");
      const Type stored = kernel_.buffers[expr_.a].type;
      ask(expr_.type == stored, "loads as ", name_of(expr_.type), " from a buffer of ", name_of(stored));
    } else if (expr_.op == Op::Offset) {
      ask(is_place(expr_.a, kernel_.buffers.size()), "is an offset in buffer ", expr_.a,
          ", which is not there");
      ask(expr_.type == Type::I32 || expr_.type == Type::I64, "is an offset of ", name_of(expr_.type),
          ", not of i32 or i64");
    } else if (expr_.op == Op::Number) {
      ask(is_place(expr_.a, kernel_.numbers), "is number ", expr_.a, ", which is not there");
    } else {
      ask(is_place(expr_.a, kernel_.rank()), "is the index of dimension ", expr_.a, ", which is not there");
      ask(expr_.type == Type::I64, "is an index of ", name_of(expr_.type), ", not of i64");
    }
  }

  void verify_arithmetic() const {
    ask_allowed(expr_.type);
    for (int32_t operand : operands(expr_)) ask_same(operand, expr_.type);
  }

  void verify_comparison() const {
    ask(expr_.type == Type::Bool, "(", facts().name, ") gives ", name_of(expr_.type), ", not bool");
    ask_same(expr_.b, type_of(expr_.a));
  }

  void verify_select() const {
    ask_same(expr_.a, Type::Bool);
    ask_same(expr_.b, expr_.type);
    ask_same(expr_.c, expr_.type);
  }

  void verify_fold() const {
    ask(kernel_.reduced > 0, "(", facts().name, ") folds along reduced dimensions, but there are none");
    verify_arithmetic();
  }

  const Kernel& kernel_;
  size_t place_;
  const Expr& expr_;
};

void verify_number_types(const Kernel& kernel) {
  std::map<int32_t, Type> types;
  for (const Expr& expr : kernel.exprs) {
    if (expr.op != Op::Number) continue;
    const Type first = types.emplace(expr.a, expr.type).first->second;
    require(first == expr.type, "number ", expr.a, " is read as ", name_of(first), " and as ",
            name_of(expr.type));
  }
}

void verify_store(const Kernel& kernel, const Store& store, bool varies) {
  const Buffer& buffer = kernel.buffers[store.buffer];
  const Type type = kernel.exprs[store.expr].type;
  require(buffer.type == type, "%", store.expr, ", of ", name_of(type), ", is stored to buffer ",
          store.buffer, ", of ", name_of(buffer.type));
  require(buffer.reduced_varies == varies, "%", store.expr, " is stored to buffer ", store.buffer,
          ", and only one of them varies along the reduced dimensions");
  require(buffer.lane != Step::Zero || (!kernel.lane_kept && !varies), "%", store.expr,
          " is stored to buffer ", store.buffer, ", where all lanes are one place");
}

void verify_stores(const Kernel& kernel) {
  std::vector<bool> loaded(kernel.buffers.size()), stored(kernel.buffers.size());
  for (const Expr& expr : kernel.exprs)
    if (expr.op == Op::Load) loaded[expr.a] = true;
  const std::vector<bool> varies = varying(kernel);
  for (const Store& store : kernel.stores) {
    require(is_place(store.expr, kernel.exprs.size()), "%", store.expr, " is stored, but not there");
    require(is_place(store.buffer, kernel.buffers.size()), "%", store.expr, " is stored to buffer ",
            store.buffer, ", which is not there");
    require(!stored[store.buffer], "buffer ", store.buffer, " is stored to twice");
    require(!loaded[store.buffer], "buffer ", store.buffer, " is both loaded and stored");
    stored[store.buffer] = true;
    verify_store(kernel, store, varies[store.expr]);
  }
}

}  // namespace

void verify(const Kernel& kernel) {
  verify_dimensions(kernel);
  for (size_t i = 0; i < kernel.buffers.size(); ++i) verify_buffer(kernel, i);
  for (size_t i = 0; i < kernel.exprs.size(); ++i) VerifiedExpr(kernel, i).verify();
  verify_number_types(kernel);
  verify_stores(kernel);
}

}  // namespace tandem::loops
