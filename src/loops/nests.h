/// The loops that nodes are computed in.
#pragma once

#include "loops/access.h"

#include <span>

namespace tandem::loops {

/// Those that the widest of these nodes would have by itself; one that folds comes before those that do not.
LoopNest widest_nest(const Graph& graph, std::span<const int32_t> members);

}  // namespace tandem::loops
