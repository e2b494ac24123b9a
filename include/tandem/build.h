/// Building graphs call by call: the results are described as libtorch would make them, so that nobody has to
/// invent sizes, strides or storages.
///
///   tandem::Graph graph;
///   tandem::Builder build(graph);
///   tandem::Value x = build.input({2, 3});
///   graph.set_outputs({build.call("aten::sin", {x})});
///
/// A decomposition or a pass appends to the graph that it was given in the same way.
#pragma once

#include <tandem/graph.h>

namespace [[gnu::visibility("default")]] tandem {

/// The operator with this full name ("aten::add.Tensor"); throws Error when libtorch has none.
c10::OperatorHandle find_op(const std::string& full_name);

/// Appends a call to a functional graph, its results described by shape inference; arguments left out take
/// the schema's defaults. Throws Error for an operator that writes.
Node& append_call(Graph& graph, const c10::OperatorHandle& op, std::vector<Operand> arguments,
                  Phase phase = Phase::Forward);

/// Appends to one graph, in one phase.
class Builder {
 public:
  explicit Builder(Graph& graph, Phase phase = Phase::Forward) : graph_(graph), phase_(phase) {}

  /// A new input in memory of its own; contiguous unless strides are given.
  Value input(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat, c10::Device device = c10::kCPU,
              at::IntArrayRef strides = {});
  /// A tensor that is part of the program.
  Value constant(const at::Tensor& data);
  /// A call, by the operator's full name, with all of its results.
  Node& node(const std::string& op, std::vector<Operand> arguments) {
    return append_call(graph_, find_op(op), std::move(arguments), phase_);
  }
  /// The first result of a call.
  Value call(const std::string& op, std::vector<Operand> arguments) {
    return std::get<Value>(node(op, std::move(arguments)).results[0]);
  }

 protected:
  Graph& graph_;
  const Phase phase_;
};

}  // namespace tandem
