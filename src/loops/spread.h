/// Dimensions laid out along loops.
#pragma once

#include "loops/access.h"

namespace tandem::loops {

/// How `loops` (places in the nest, ascending) go along dimensions of these sizes, the last loop along the
/// last dimension: of each loop of the nest. Nothing where they do not have as many places together, or one
/// loop goes along parts of two dimensions; where it would do if a loop were two, `split` says which.
std::optional<AlongLoops> spread(const LoopNest& nest, const std::vector<size_t>& loops, const Dims& sizes,
                                 std::optional<Split>& split);

}  // namespace tandem::loops
