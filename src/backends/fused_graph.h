/// A graph in which groups of nodes, and products that run at once, are one call each.
#pragma once

#include <tandem/graph.h>

#include "backends/side_by_side.h"
#include "loops/groups.h"

namespace tandem {

struct FusedGraph {
  /// calls tandem::fused with the number of a group, tandem::side_by_side with that of products
  Graph graph;
  std::vector<loops::Fused> groups;
  std::vector<loops::Members> members;  ///< nodes of the graph that it was, by group
  std::vector<SideBySide> side_by_side = {};
};

/// What loops can compute is put into groups for so many threads; the rest stays as it is. The groups are
/// those with these members, found for other sizes before, where there are such and they fit.
FusedGraph fuse(const Graph& graph, int64_t threads, const std::vector<loops::Members>* known = nullptr);

const c10::OperatorHandle& fused_operator();

/// The graph, and behind it the launches of each group: their kernels, sizes and strides.
std::string to_string(const FusedGraph& fused);

}  // namespace tandem
