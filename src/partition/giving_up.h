/// In which order kept blocks are given up when there is less memory for them.
#pragma once

#include "partition/blocks.h"

namespace tandem {

/// One step down: the block is not kept any more, and these are instead.
struct GivenUp {
  size_t block;
  std::vector<size_t> kept_instead;  ///< states of generators, copies of inputs
  int64_t bytes;                     ///< that are kept less
  double seconds;                    ///< that the backward takes longer
};

/// Steps by bytes for seconds, each behind all those before it.
std::vector<GivenUp> order_of_giving_up(const Joint& joint, const Blocks& blocks, std::vector<bool> kept,
                                        const CostModel& cost_model);

}  // namespace tandem
