/// What libtorch is asked for where a graph is run node by node.
#pragma once

#include <tandem/backend.h>

namespace tandem {

/// Whether running the node takes a kernel of a library's: views take none.
bool is_library_call(const Node& node);
KernelInfo library_call(const Graph& graph, const Node& node);
/// Of all nodes that are such calls.
std::vector<KernelInfo> library_calls(const Graph& graph);

/// That of what it makes first, or of its operator where it makes nothing.
std::string name_of(const Graph& graph, const Node& node);

}  // namespace tandem
