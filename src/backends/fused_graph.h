/// A graph in which groups of nodes are one call each.
#pragma once

#include <tandem/graph.h>

#include "loops/launch.h"

namespace tandem {

struct FusedGraph {
  Graph graph;  ///< calls tandem::fused with the number of a group
  std::vector<loops::Fused> groups;
};

/// What loops can compute is put into groups for so many threads; the rest stays as it is.
FusedGraph fuse(const Graph& graph, int64_t threads);

const c10::OperatorHandle& fused_operator();

/// The graph, and behind it the launches of each group: their kernels, sizes and strides.
std::string to_string(const FusedGraph& fused);

}  // namespace tandem
