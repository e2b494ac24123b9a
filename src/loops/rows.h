/// Operators as expressions: one row an operator.
#pragma once

#include "loops/expressions.h"

#include <tandem/graph.h>

namespace tandem::loops {

/// One node on its way into expressions.
class Lowering {
 public:
  /// `operands` are the expressions of its tensor arguments, by place; -1 where there is none.
  Lowering(Expressions& expressions, const Graph& graph, const Node& node, std::vector<int32_t> operands)
      : e(expressions), graph_(graph), node_(node), operands_(std::move(operands)) {}

  Expressions& e;

  bool has_tensor(size_t i) const { return operands_[i] >= 0; }
  /// An argument in its own type, and in another.
  int32_t tensor(size_t i) const { return operands_[i]; }
  int32_t tensor(size_t i, Type type) const { return e.cast(operands_[i], type); }
  const c10::IValue& constant(size_t i) const { return std::get<c10::IValue>(node_.arguments[i]); }
  bool is_none(size_t i) const {
    auto* constant = std::get_if<c10::IValue>(&node_.arguments[i]);
    return constant && constant->isNone();
  }
  int32_t number(size_t i, Type type) const { return e.number(constant(i).toScalar(), type); }
  /// A tensor or a number, whichever the argument is.
  int32_t any(size_t i, Type type) const { return has_tensor(i) ? tensor(i, type) : number(i, type); }
  int32_t literal(double value, Type type) const { return e.number(value, type); }
  /// The type of the result.
  Type type() const { return *type_of(meta().dtype); }
  const TensorMeta& meta() const { return graph_.meta(std::get<Value>(node_.results[0])); }
  const TensorMeta& meta(size_t i) const { return graph_.meta(std::get<Value>(node_.arguments[i])); }
  size_t argument_count() const { return operands_.size(); }

 private:
  const Graph& graph_;
  const Node& node_;
  std::vector<int32_t> operands_;
};

/// The expression of a node's result; nothing where these arguments are not for loops.
using LowerNode = std::optional<int32_t> (*)(const Lowering&);

/// The row of an operator whose result at a place depends on its arguments at that place; null: there is
/// none.
LowerNode find_pointwise_row(const c10::OperatorHandle& op);

/// What folds one argument along dimensions.
struct FoldRow {
  Op op;
  bool mean = false;
  bool question = false;  ///< whether elements are not 0: for results of Bool alone
  bool place = false;     ///< where the first element is that the fold gives, as a number of these dimensions
};
const FoldRow* find_fold_row(const c10::OperatorHandle& op);
/// The dimensions of its first argument that such a node folds, ascending.
std::vector<int32_t> folded_dims(const Graph& graph, const Node& node);

}  // namespace tandem::loops
