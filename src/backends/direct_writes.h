/// Operators that write an input where they stand, instead of on a copy that is copied back at the end.
#pragma once

#include <tandem/graph.h>

namespace tandem {

/// Rewrites clone, write, copy back into one write to the input itself wherever nothing reads the old
/// contents in between; batch norm's running statistics are such a case. The result runs like the graph but
/// is no functional graph any more.
Graph write_inputs_directly(Graph graph);
/// Whether a graph copies anything back, so that there is something to rewrite.
bool copies_back(const Graph& graph);

}  // namespace tandem
