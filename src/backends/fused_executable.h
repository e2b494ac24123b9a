/// Runs a graph in which groups of nodes are kernels.
#pragma once

#include <tandem/backend.h>

#include "backends/machine.h"

namespace tandem {

/// Without machine code the groups' loops are interpreted.
std::shared_ptr<Executable> executable_of(FusedGraph fused, Machine machine);

}  // namespace tandem
