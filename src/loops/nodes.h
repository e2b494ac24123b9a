/// Which nodes of a graph loops can compute.
#pragma once

#include <tandem/graph.h>

namespace tandem::loops {

/// Whether loops can compute a node: by the rows of operators.
bool is_for_loops(const Graph& graph, const Node& node);

/// A tensor that it is given; null where the argument is something else.
const Value* argument_of(const Node& node, size_t i);
/// The one result of a node that is for loops.
inline Value result_of(const Node& node) { return std::get<Value>(node.results[0]); }

}  // namespace tandem::loops
