#include "graph/draws.h"
#include "graph/uses.h"
#include "ops/facts.h"
#include "ops/versions.h"

#include <tandem/passes.h>

namespace tandem {
namespace {

/// Must the node run even when nothing reads what it makes?
bool must_run(const Graph& graph, const Node& node, const std::unordered_set<int32_t>& input_storages,
              const std::vector<bool>& is_input) {
  const OpFacts& op = facts(node.op);
  // A random node that is left out would shift the numbers that every later one draws.
  if (op.side_effect || draws_live(node)) return true;
  if (node.phase == Phase::Forward && is_foreign(node.op)) return true;
  return std::any_of(node.writes.begin(), node.writes.end(), [&](const auto& write) {
    Value before = write.first;
    int32_t storage = graph.meta(before).storage;
    return is_input[before.id] || (storage >= 0 && input_storages.contains(storage));
  });
}

}  // namespace

Graph eliminate_dead_code(Graph graph) {
  std::vector<bool> live(graph.value_count()), is_input(graph.value_count());
  const std::unordered_set<int32_t> input_storages = storages_of_inputs(graph);
  for (Value v : graph.inputs()) is_input[v.id] = true;
  for (Value v : graph.outputs())
    if (v) live[v.id] = true;

  auto& nodes = graph.nodes();
  std::vector<bool> keep(nodes.size());
  for (size_t i = nodes.size(); i-- > 0;) {
    bool needed = false;
    for_each_result(nodes[i], [&](Value v) { needed = needed || live[v.id]; });
    keep[i] = needed = needed || must_run(graph, nodes[i], input_storages, is_input);
    if (needed) for_each_argument(nodes[i], [&](Value v) { live[v.id] = true; });
  }

  size_t index = 0;
  std::erase_if(nodes, [&](const Node&) { return !keep[index++]; });
  std::erase_if(graph.constants(), [&](const auto& constant) { return !live[constant.first.id]; });
  return graph;
}

}  // namespace tandem
