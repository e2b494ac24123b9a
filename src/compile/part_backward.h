/// The backward of one part of an order.
#pragma once

#include "aot/joint.h"

namespace tandem {

/// What of a backward half the gradients of a part need.
struct PartBackward {
  Graph graph;                ///< takes `saved` values, then the tangents of the part
  std::vector<size_t> saved;  ///< in order
  bool stands_alone = true;   ///< false where something happens in the half besides, for all parts at once
};

PartBackward backward_of(const OrderPart& part, const Partition& halves);

}  // namespace tandem
