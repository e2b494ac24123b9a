/// Who makes and who reads the values of a graph. Each answer has one number a value, by its id.
#pragma once

#include <tandem/graph.h>

#include <unordered_set>

namespace tandem {

constexpr int32_t no_node = -1;

/// Which node makes it; no_node for inputs, constants and what is not there.
std::vector<int32_t> makers(const Graph& graph);
/// An argument that is one tensor, else none.
Value tensor_at(const Node& node, size_t argument);
/// The node that makes this one, or null.
const Node* maker_of(const Graph& graph, Value value);
/// How often it is read, by nodes and as an output.
std::vector<int32_t> read_counts(const Graph& graph);
/// The last node that reads it; the graph's outputs are read behind the last node. no_node: nothing does.
std::vector<int32_t> last_reads(const Graph& graph);

/// Memory that was there before the graph runs.
std::unordered_set<int32_t> storages_of_inputs(const Graph& graph);
std::unordered_set<int32_t> storages_of_constants(const Graph& graph);
/// Memory that the caller gives, or gets with the first so many outputs.
std::unordered_set<int32_t> storages_of_caller(const Graph& graph, size_t results);

/// Without the constants that nothing reads.
Graph without_unread_constants(Graph graph);

/// Values that nothing in the graph names keep their ids, and nothing else is known of them.
Graph without_unused_metas(Graph graph);

}  // namespace tandem
