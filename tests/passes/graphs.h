/// Small graphs for tests, written call by call.
#pragma once

#include <tandem/build.h>

namespace tandem {

struct GraphWriter {
  Graph graph;
  Phase phase = Phase::Forward;

  /// An input of these sizes in memory of its own; contiguous unless strides are given.
  Value input(Dims sizes, at::ScalarType dtype = at::kDouble, Dims strides = {}) {
    return build().input(sizes, dtype, c10::kCPU, strides);
  }
  Value constant(const at::Tensor& data) { return build().constant(data); }

  Node& node(const char* op, std::vector<Operand> arguments) {
    return build().node(op, std::move(arguments));
  }
  Value call(const char* op, std::vector<Operand> arguments) {
    return build().call(op, std::move(arguments));
  }

  /// What an input of this kind would be described as.
  TensorMeta meta(const Dims& sizes, at::ScalarType dtype = at::kDouble, Dims strides = {}) {
    GraphWriter scratch;
    TensorMeta made = scratch.graph.meta(scratch.input(sizes, dtype, strides));
    made.storage = graph.fresh_storage();
    return made;
  }

 private:
  Builder build() { return Builder(graph, phase); }
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
