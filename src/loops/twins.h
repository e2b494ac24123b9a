/// Which values are computed alike.
#pragma once

#include <tandem/graph.h>

namespace tandem::loops {

/// For each value, by its id, that of the first one which is the same elements in memory laid out alike: made
/// by the same operator of the same values and constants. Itself where it is no result of `asked` nodes.
std::vector<int32_t> twins(const Graph& graph, const std::vector<bool>& asked);

}  // namespace tandem::loops
