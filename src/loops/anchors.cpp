#include "loops/anchors.h"

namespace tandem::loops {
namespace {

/// The argument that a result is a view of; none where it has memory of its own, or elements that are read
/// otherwise.
Value viewed_argument(const Graph& graph, const Node& node, Value result) {
  const TensorMeta& made = graph.meta(result);
  Value found;
  for_each_argument(node, [&](Value argument) {
    const TensorMeta& read = graph.meta(argument);
    if (!found && read.storage == made.storage && read.dtype == made.dtype && read.neg == made.neg &&
        read.conj == made.conj)
      found = argument;
  });
  return found;
}

}  // namespace

std::vector<Value> anchors(const Graph& graph) {
  std::vector<Value> all(graph.value_count());
  for (size_t id = 0; id < all.size(); ++id) all[id] = Value{int32_t(id)};
  for (const Node& node : graph.nodes()) {
    if (!node.writes.empty()) continue;
    for (const Operand& operand : node.results)
      for_each_value(operand, [&](Value result) {
        if (Value viewed = viewed_argument(graph, node, result)) all[result.id] = all[viewed.id];
      });
  }
  return all;
}

}  // namespace tandem::loops
