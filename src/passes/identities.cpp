#include "passes/standard.h"

#include "ops/facts.h"

namespace tandem {

Graph remove_identities(Graph graph) {
  std::vector<Value> source(graph.value_count());
  for (size_t i = 0; i < source.size(); ++i) source[i] = Value{int32_t(i)};
  std::vector<bool> leaves(graph.value_count());
  for (Value v : graph.outputs())
    if (v) leaves[v.id] = true;

  std::erase_if(graph.nodes(), [&](Node& node) {
    map_arguments(node, [&](Value v) { return source[v.id]; });
    for (auto& [before, after] : node.writes) before = source[before.id];
    if (!facts(node.op).identity) return false;
    Value result = std::get<Value>(node.results[0]);
    source[result.id] = std::get<Value>(node.arguments[0]);
    return !leaves[result.id];
  });
  return graph;
}

}  // namespace tandem
