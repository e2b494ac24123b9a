/// Which values are views of which: loops read memory through strides, whatever a view was made by.
#pragma once

#include <tandem/graph.h>

namespace tandem::loops {

/// For each value, by its id, the one whose memory it is a view of: one that a node made or an input, itself
/// where it is no view. Elements of a view are those of its anchor, of the same type.
std::vector<Value> anchors(const Graph& graph);

}  // namespace tandem::loops
