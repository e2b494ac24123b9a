/// In which order the nodes of the halves run.
#pragma once

#include <tandem/partition.h>

namespace tandem {

/// Each half in an order in which less is alive at once, where that lowers its predicted peak, and as
/// recorded wherever the peak is not. Nodes that write, draw from the live generator or have side effects
/// keep their order.
Partition scheduled(Partition halves);

}  // namespace tandem
