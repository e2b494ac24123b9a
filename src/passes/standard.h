/// The passes that every compile runs, in their order.
#pragma once

#include <tandem/passes.h>

namespace tandem {

/// Lets readers of aten::detach, aten::alias and aten::lift_fresh read their argument; a result that leaves
/// the graph stays a tensor of its own.
Graph remove_identities(Graph graph);

/// Runs passes of others one after the other; throws Error that names the first that breaks the graph, or
/// changes what it takes or returns.
Graph run_passes(Graph graph, const std::vector<Pass>& passes);

/// Those in `joint_passes`, then decompositions, identities, constants, common subexpressions, dead code;
/// linear in the size of the graph.
Graph run_standard_passes(Graph graph, const DecompositionTable& table, const std::vector<Pass>& joint_passes,
                          Reruns reruns = Reruns::Merged);

}  // namespace tandem
