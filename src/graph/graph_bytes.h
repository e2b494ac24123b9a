/// Graphs as compact bytes, for machines; Graph::to_string is what people read.
#pragma once

#include <tandem/graph.h>

namespace tandem {

/// Everything there is to a graph: ids and metas of all values, those that nothing uses included, names,
/// constants with their data, phases and locations. Only a storage of constants that share one is not kept:
/// each gets memory of its own. Throws Error that names the node whose constant has no bytes.
std::string encode_graph(const Graph& graph);

/// A graph that verifies; throws Error otherwise. Memory stays in proportion to the bytes.
Graph decode_graph(std::string_view bytes);

}  // namespace tandem
