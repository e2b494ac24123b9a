/// The passes that every compile runs, in their order.
#pragma once

#include <tandem/passes.h>

namespace tandem {

/// Lets readers of aten::detach, aten::alias and aten::lift_fresh read their argument; a result that leaves the graph stays a tensor of its own.
Graph remove_identities(Graph graph);

/// Registered passes, decompositions, identities, constants, common subexpressions, dead code; linear in the size of the graph.
Graph run_standard_passes(Graph graph, const DecompositionTable& table, Stage stage);

}  // namespace tandem
