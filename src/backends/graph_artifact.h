/// The artifact of a backend whose code is the graph itself.
#pragma once

#include "graph/graph_bytes.h"

namespace tandem {

inline std::vector<uint8_t> bytes_of(const Graph& graph) {
  const std::string bytes = encode_graph(graph);
  return {bytes.begin(), bytes.end()};
}

/// Throws Error unless the bytes are a graph that verifies.
inline Graph graph_from(const std::vector<uint8_t>& bytes) {
  return decode_graph({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace tandem
