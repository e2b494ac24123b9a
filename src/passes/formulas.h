/// Writes the calls of a decomposition as a formula.
#pragma once

#include <tandem/backend.h>
#include <tandem/build.h>

namespace tandem {

/// Appends calls to a graph on behalf of one node that is being replaced.
class Formula : public Builder {
 public:
  Formula(Graph& graph, const Node& node) : Builder(graph, node.phase), node_(node) {}

  // The arguments of the node.
  Value tensor(size_t i) const {
    auto* value = std::get_if<Value>(&node_.arguments[i]);
    return value ? *value : Value();
  }
  double number(size_t i) const { return constant(i).toScalar().toDouble(); }
  const c10::IValue& constant(size_t i) const { return std::get<c10::IValue>(node_.arguments[i]); }
  const TensorMeta& meta(Value v) const { return graph_.meta(v); }

  // Arithmetic of floating-point tensors with tensors and with numbers.
  Value add(Value a, Value b) { return call("aten::add.Tensor", {a, b}); }
  Value mul(Value a, Value b) { return call("aten::mul.Tensor", {a, b}); }
  Value add(Value a, double b) { return call("aten::add.Scalar", {a, c10::IValue(b)}); }
  Value mul(Value a, double b) { return b == 1 ? a : call("aten::mul.Scalar", {a, c10::IValue(b)}); }
  Value from_one(Value a) { return call("aten::rsub.Scalar", {a, c10::IValue(1.0)}); }  ///< 1 - a
  Value apply(const char* op, Value a) { return call(op, {a}); }
  Value compare(const char* op, Value a, double b) { return call(op, {a, c10::IValue(b)}); }
  Value clamp(Value a, double low, double high) {
    return call("aten::clamp", {a, c10::IValue(low), c10::IValue(high)});
  }
  Value where(Value condition, Value yes, Value no) { return call("aten::where.self", {condition, yes, no}); }
  /// A number as a tensor without dimensions, of the dtype and on the device of `like`.
  Value scalar(const c10::IValue& number, Value like) {
    const TensorMeta description = meta(like);
    return call("aten::scalar_tensor", {number, c10::IValue(int64_t(description.dtype)), c10::IValue(),
                                        c10::IValue(description.device)});
  }
  Value cast(Value a, at::ScalarType dtype) {
    return meta(a).dtype == dtype ? a : call("aten::_to_copy", {a, c10::IValue(int64_t(dtype))});
  }

  /// libtorch's kernels compute half precision in float: so does a formula, or its rounding would add up.
  Value widened(Value a) {
    at::ScalarType dtype = meta(a).dtype;
    return dtype == at::kHalf || dtype == at::kBFloat16 ? cast(a, at::kFloat) : a;
  }
  Value as_result(Value a, size_t result = 0) {
    return cast(a, meta(std::get<Value>(node_.results[result])).dtype);
  }

 private:
  const Node& node_;
};

/// The rows of the default table that are made of arithmetic alone, each under an operator's full name.
void add_activations(DecompositionTable& table);
void add_activation_backwards(DecompositionTable& table);

/// The default table without what users have added to it or replaced in it.
DecompositionTable built_in_decompositions();

}  // namespace tandem
