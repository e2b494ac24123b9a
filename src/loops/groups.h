/// Which nodes of a graph one kernel computes together.
#pragma once

#include "loops/launch.h"

namespace tandem::loops {

struct Group {
  std::vector<int32_t> members;  ///< nodes, ascending
  Fused fused;
};

/// Nodes that one nest can compute, put together where that takes less time: less memory is gone through. A
/// node may be in several groups, where computing it again is cheaper than reading it, or in none: then it is
/// for a library. The groups can be run one behind the other, and no node lies between members of one.
std::vector<Group> groups(const Graph& graph, int64_t threads);

}  // namespace tandem::loops
