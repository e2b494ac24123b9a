/// Where NaN comes from in code that was compiled as one piece.
#pragma once

#include <tandem/graph.h>

#include <string>

namespace tandem {

/// The first node of `graph`, run on these inputs, that makes NaN of values without one: its operator and the nodes around it. Empty when NaN came in from
/// outside, or there is none.
std::string source_of_nan(const Graph& graph, Tensors inputs);

}  // namespace tandem
