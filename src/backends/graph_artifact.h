/// The artifact of a backend whose code is the graph itself, which is kept beside it anyway.
#pragma once

#include <tandem/graph.h>

namespace tandem {

/// Which graph it is.
inline std::vector<uint8_t> bytes_of(const Graph& graph) {
  const std::string hash = graph.hash();
  return {hash.begin(), hash.end()};
}

}  // namespace tandem
