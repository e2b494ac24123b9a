/// From drafts to launches: which loops are outer, which are one, which run along the lanes, and how work is
/// cut for threads.
#pragma once

#include "loops/draft.h"
#include "loops/launch.h"

namespace tandem::loops {

/// The launches of a group's drafts for so many threads; nothing where one would keep most of them idle.
std::optional<Fused> arrange(const Graph& graph, std::vector<Draft> parts, int64_t threads);

}  // namespace tandem::loops
