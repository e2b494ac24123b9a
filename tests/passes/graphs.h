/// Small graphs for tests, written call by call.
#pragma once

#include "trace/shapes.h"

#include <tandem/graph.h>

namespace tandem {

struct GraphWriter {
  Graph graph;
  Phase phase = Phase::Forward;

  /// An input of these sizes in memory of its own; contiguous unless strides are given.
  Value input(Dims sizes, at::ScalarType dtype = at::kDouble, Dims strides = {}) { return graph.add_input(meta(sizes, dtype, strides)); }
  Value constant(const at::Tensor& data) {
    return graph.add_constant(meta(Dims(data.sizes().begin(), data.sizes().end()), data.scalar_type(), Dims(data.strides().begin(), data.strides().end())), data);
  }

  Node& node(const char* op, std::vector<Operand> arguments) {
    return append_call(graph, find_op(op), std::move(arguments), phase);
  }
  Value call(const char* op, std::vector<Operand> arguments) { return std::get<Value>(node(op, std::move(arguments)).results[0]); }

  TensorMeta meta(const Dims& sizes, at::ScalarType dtype = at::kDouble, Dims strides = {}) {
    TensorMeta made;
    made.dtype = dtype;
    made.sizes = sizes;
    made.strides = strides;
    if (strides.size() != sizes.size()) {
      made.strides.resize(sizes.size());
      int64_t step = 1;
      for (size_t i = sizes.size(); i-- > 0; step *= std::max<int64_t>(sizes[i], 1)) made.strides[i] = step;
    }
    made.storage = graph.fresh_storage();
    return made;
  }
};

inline c10::IValue ints(std::vector<int64_t> values) { return c10::IValue(values); }
inline c10::IValue number(int64_t value) { return c10::IValue(value); }
inline c10::IValue number(double value) { return c10::IValue(value); }

inline bool has_call(const Graph& graph, const std::string& name) {
  for (const Node& node : graph.nodes())
    if (node.op.operator_name().name == name) return true;
  return false;
}

}  // namespace tandem
