/// What runs again writes memory of its own.
#pragma once

#include <tandem/graph.h>

namespace tandem {

/// The graph where no node writes in memory that an input lies in, copies back into inputs excepted. An
/// operator that writes several tensors runs again for the sake of one while another one is kept: of what is
/// kept there is a copy, or a second one is made in other memory.
Graph with_own_memory(Graph graph);

}  // namespace tandem
