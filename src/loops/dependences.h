/// What must run before what.
#pragma once

#include <tandem/graph.h>

namespace tandem::loops {

/// For each node those that have to wait for it: they read what it makes, write what it reads, or draw random
/// numbers and have effects behind it. Nodes of which `reads_memory` says so wait for whoever fills memory
/// that they read, and not for views of it.
std::vector<std::vector<int32_t>> followers(const Graph& graph, const std::vector<bool>& reads_memory);

}  // namespace tandem::loops
