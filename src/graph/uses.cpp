#include "graph/uses.h"

namespace tandem {

std::vector<int32_t> makers(const Graph& graph) {
  std::vector<int32_t> found(graph.value_count(), no_node);
  const auto& nodes = graph.nodes();
  for (size_t n = 0; n < nodes.size(); ++n)
    for_each_result(nodes[n], [&](Value v) { found[v.id] = int32_t(n); });
  return found;
}

Value tensor_at(const Node& node, size_t argument) {
  const Value* value =
      argument < node.arguments.size() ? std::get_if<Value>(&node.arguments[argument]) : nullptr;
  return value ? *value : Value();
}

const Node* maker_of(const Graph& graph, Value value) {
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    bool made_here = false;
    for_each_result(*node, [&](Value result) { made_here = made_here || result == value; });
    if (made_here) return &*node;
  }
  return nullptr;
}

std::vector<int32_t> read_counts(const Graph& graph) {
  std::vector<int32_t> counts(graph.value_count(), 0);
  for (const Node& node : graph.nodes()) for_each_argument(node, [&](Value v) { ++counts[v.id]; });
  for (Value v : graph.outputs())
    if (v) ++counts[v.id];
  return counts;
}

std::vector<int32_t> last_reads(const Graph& graph) {
  std::vector<int32_t> last(graph.value_count(), no_node);
  const auto& nodes = graph.nodes();
  for (size_t n = 0; n < nodes.size(); ++n)
    for_each_argument(nodes[n], [&](Value v) { last[v.id] = int32_t(n); });
  for (Value v : graph.outputs())
    if (v) last[v.id] = int32_t(nodes.size());
  return last;
}

std::unordered_set<int32_t> storages_of_inputs(const Graph& graph) {
  std::unordered_set<int32_t> storages;
  for (Value v : graph.inputs()) storages.insert(graph.meta(v).storage);
  return storages;
}

std::unordered_set<int32_t> storages_of_constants(const Graph& graph) {
  std::unordered_set<int32_t> storages;
  for (const auto& [value, data] : graph.constants()) storages.insert(graph.meta(value).storage);
  return storages;
}

std::unordered_set<int32_t> storages_of_caller(const Graph& graph, size_t results) {
  std::unordered_set<int32_t> storages = storages_of_inputs(graph);
  for (size_t i = 0; i < results; ++i)
    if (Value output = graph.outputs()[i]) storages.insert(graph.meta(output).storage);
  return storages;
}

Graph without_unread_constants(Graph graph) {
  if (graph.constants().empty()) return graph;
  const std::vector<int32_t> reads = read_counts(graph);
  std::erase_if(graph.constants(), [&](const auto& constant) { return reads[constant.first.id] == 0; });
  return graph;
}

Graph without_unused_metas(Graph graph) {
  std::vector<bool> used(graph.value_count());
  auto note = [&](Value v) {
    if (v) used[size_t(v.id)] = true;
  };
  for (Value v : graph.inputs()) note(v);
  for (const auto& [value, data] : graph.constants()) note(value);
  for (const Node& node : graph.nodes()) {
    for_each_argument(node, note);
    for_each_result(node, note);
  }
  for (Value v : graph.outputs()) note(v);
  for (size_t id = 0; id < used.size(); ++id)
    if (!used[id]) graph.meta(Value{int32_t(id)}) = {};
  return graph;
}

}  // namespace tandem
