/// Memory that operators take for themselves while they run.
#pragma once

#include <tandem/graph.h>

namespace tandem {

/// About how many bytes libtorch's kernel of a node holds besides what it reads and returns; 0 where nothing
/// is known.
int64_t workspace_bytes(const Graph& graph, const Node& node);

}  // namespace tandem
