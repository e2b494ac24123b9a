/// A recorded graph, with its views and writes, to one that only computes values.
#pragma once

#include <tandem/graph.h>

namespace tandem {

/// What is asked of a recorded graph. All values are those of the trace.
struct FunctionalRequest {
  const Graph& trace;
  size_t forward_nodes = 0;            ///< the nodes before this one are the forward
  std::vector<Value> forward_outputs;  ///< as they are when the forward ends
  /// inputs whose final contents are copied back by the last nodes of the forward
  std::vector<Value> kept_writes;
  std::vector<Value> gradients;  ///< as they are when the backward ends
};

struct FunctionalGraph {
  /// inputs of the trace; outputs: forward_outputs, then gradients
  Graph graph;
  bool reads_offsets = false;  ///< where in its storage an input begins changes the result
};

/// Every write becomes a new value and every later read of that memory reads it; results keep the strides
/// that the program saw. Throws RunEagerly where memory itself is replaced or resized. Forward outputs share
/// memory neither with each other nor with an input.
FunctionalGraph functionalize(const FunctionalRequest& request);

}  // namespace tandem
