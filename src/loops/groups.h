/// Which nodes of a graph one kernel computes together.
#pragma once

#include "loops/launch.h"

#include <optional>

namespace tandem::loops {

/// Nodes of a group, ascending.
struct Members {
  std::vector<int32_t> own;
  /// of other groups, or of none: computing them again is cheaper than reading what they made
  std::vector<int32_t> borrowed;
};

struct Group {
  Members members;
  Fused fused;  ///< no launches where others borrow all that is needed of it
};

/// Nodes that one nest can compute, put together where that takes less time: less memory is gone through. A
/// node in no group is for a library. The groups can be run one behind the other, and no node lies between
/// members of one.
std::vector<Group> groups(const Graph& graph, int64_t threads);

/// The same with these members, which were found for a graph of the same nodes and other sizes; nothing where
/// they are no groups of this graph.
std::optional<std::vector<Group>> groups_of(const Graph& graph, int64_t threads,
                                            const std::vector<Members>& members);

}  // namespace tandem::loops
