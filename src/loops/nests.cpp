#include "loops/nests.h"

#include <algorithm>

#include "loops/nodes.h"
#include "loops/rows.h"

namespace tandem::loops {
namespace {

/// The loops that a node by itself would have.
LoopNest nest_of(const Graph& graph, const Node& node) {
  const bool is_fold = find_fold_row(node.op) != nullptr;
  const TensorMeta& space = graph.meta(is_fold ? *argument_of(node, 0) : result_of(node));
  const std::vector<int32_t> folded = is_fold ? folded_dims(graph, node) : std::vector<int32_t>();
  LoopNest nest;
  for (size_t dim = 0; dim < space.sizes.size(); ++dim)
    if (space.sizes[dim] > 1)
      nest.push_back({space.sizes[dim], std::binary_search(folded.begin(), folded.end(), int32_t(dim))});
  return nest;
}

int64_t places(const LoopNest& nest) {
  int64_t count = 1;
  for (const Loop& loop : nest) count *= loop.size;
  return count;
}

bool folds(const LoopNest& nest) {
  return std::any_of(nest.begin(), nest.end(), [](const Loop& loop) { return loop.reduced; });
}

}  // namespace

LoopNest widest_nest(const Graph& graph, std::span<const int32_t> members) {
  LoopNest widest;
  for (int32_t member : members) {
    LoopNest nest = nest_of(graph, graph.nodes()[size_t(member)]);
    if (std::pair(folds(nest), places(nest)) > std::pair(folds(widest), places(widest)))
      widest = std::move(nest);
  }
  return widest;
}

}  // namespace tandem::loops
