/// Writes whose result depends on the order in which a kernel reads and writes.
#pragma once

#include <tandem/graph.h>

namespace tandem {

/// Whether a recorded operator reads memory that it writes in other places: what eager's kernel leaves there,
/// no functional operator computes.
bool reads_what_it_writes(const Graph& trace, const Node& node);

}  // namespace tandem
