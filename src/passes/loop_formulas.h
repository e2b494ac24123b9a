/// Writes what a loop can compute as a formula: folds that keep their dimensions, views, broadcasts.
#pragma once

#include "passes/formulas.h"

#include <numeric>
#include <span>

namespace tandem {

using Axes = std::vector<int64_t>;

/// The dimensions from `first` up to `last`.
inline Axes axes_between(int64_t first, int64_t last) {
  Axes axes(std::max<int64_t>(last - first, 0));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

/// Appends calls on behalf of one node that the loop table replaces.
class LoopFormula : public Formula {
 public:
  LoopFormula(Graph& graph, const Node& node) : Formula(graph, node), node_(node) {}

  const Node& replaced() const { return node_; }
  /// None where the call does not make it.
  Value result(size_t i) const {
    auto* value = std::get_if<Value>(&node_.results[i]);
    return value ? *value : Value();
  }
  Axes sizes(Value v) const { return {meta(v).sizes.begin(), meta(v).sizes.end()}; }
  int64_t rank(Value v) const { return std::ssize(meta(v).sizes); }
  /// How many elements of `v` lie along `axes`.
  int64_t extent(Value v, const Axes& axes) const {
    int64_t product = 1;
    for (int64_t axis : axes) product *= meta(v).sizes[axis];
    return product;
  }
  /// The dimensions of `v` that argument `i` names, from 0 on; all of them where it names none.
  Axes axes(size_t i, Value v) const;
  /// Whether a call that loops can compute makes `v`, or what `v` is a view of, and need not write it.
  bool is_made_by_loops(Value v) const;

  Value sub(Value a, Value b) { return call("aten::sub.Tensor", {a, b}); }
  Value div(Value a, Value b) { return call("aten::div.Tensor", {a, b}); }
  Value div(Value a, double b) { return b == 1 ? a : call("aten::div.Scalar", {a, c10::IValue(b)}); }
  Value square(Value a) { return mul(a, a); }
  Value at_least(Value a, double low) { return call("aten::clamp", {a, c10::IValue(low)}); }
  Value at_most(Value a, double high) { return call("aten::clamp", {a, c10::IValue(), c10::IValue(high)}); }
  Value view(Value a, const Axes& sizes) { return call("aten::view", {a, c10::IValue(sizes)}); }
  /// `a`, or its product or sum with `b` where that is there.
  Value times(Value a, Value b) { return b ? mul(a, b) : a; }
  Value plus(Value a, Value b) { return b ? add(a, b) : a; }

  /// Folds keep the dimensions that they fold, with one element.
  Value sum(Value a, const Axes& axes) { return fold("aten::sum.dim_IntList", a, axes); }
  Value mean(Value a, const Axes& axes) { return fold("aten::mean.dim", a, axes); }
  Value largest(Value a, const Axes& axes) { return fold("aten::amax", a, axes); }
  Value smallest(Value a, const Axes& axes) { return fold("aten::amin", a, axes); }
  /// With the sizes of a result of the call, which the fold or a view gives.
  Value as_sized(Value a, Value like) { return meta(a).sizes == meta(like).sizes ? a : view(a, sizes(like)); }

 private:
  /// Nothing to fold is nothing to do: libtorch would fold everything.
  Value fold(const char* op, Value a, const Axes& axes) {
    return axes.empty() ? a : call(op, {a, c10::IValue(axes), c10::IValue(true)});
  }

  const Node& node_;
};

/// An operator by its full name, and what replaces its call; no values leave it.
struct LoopRow {
  const char* op;
  std::vector<Value> (*rule)(LoopFormula&);
};

/// The rows of the loop table, by what they are about.
std::span<const LoopRow> softmax_rows();
std::span<const LoopRow> norm_rows();
std::span<const LoopRow> batch_norm_rows();
std::span<const LoopRow> moment_rows();
std::span<const LoopRow> loss_rows();
std::span<const LoopRow> class_loss_rows();
std::span<const LoopRow> smooth_activation_rows();
std::span<const LoopRow> piecewise_rows();
std::span<const LoopRow> plain_view_rows();

}  // namespace tandem
