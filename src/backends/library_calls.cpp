#include "backends/library_calls.h"

#include "graph/vocabulary.h"
#include "ops/facts.h"

namespace tandem {

bool is_library_call(const Node& node) { return !facts(node.op).view; }

std::string name_of(const Graph& graph, const Node& node) {
  Value first;
  for_each_result(node, [&](Value made) { first = first ? first : made; });
  return first ? graph.name(first) : full_name(node.op);
}

KernelInfo library_call(const Graph& graph, const Node& node) {
  return {.name = full_name(node.op), .nodes = {name_of(graph, node)}};
}

std::vector<KernelInfo> library_calls(const Graph& graph) {
  std::vector<KernelInfo> calls;
  for (const Node& node : graph.nodes())
    if (is_library_call(node)) calls.push_back(library_call(graph, node));
  return calls;
}

}  // namespace tandem
