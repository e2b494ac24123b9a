/// Rewrites of a functional graph; each keeps what the graph computes.
#pragma once

#include <tandem/graph.h>
#include <tandem/named.h>

#include <map>

namespace [[gnu::visibility("default")]] tandem {

/// Which graph of a compiled function it is: the joint (or inference) graph before it is split, or one of
/// those that a backend is given.
enum class Stage : uint8_t { Joint, Forward, Backward, Inference };

/// Rewrites one call: adds nodes to `graph` and returns the values that replace the results of `node`,
/// flattened.
using Decomposition = Named<std::vector<Value>(Graph& graph, const Node& node)>;
/// Which operators are decomposed, by full name ("aten::gelu_backward"), and how.
using DecompositionTable = std::map<std::string, Decomposition>;

/// A graph to a graph; the results must compute the same.
using Pass = Named<Graph(Graph)>;

/// Drops nodes that nothing reads, unless they write an input or have side effects.
Graph eliminate_dead_code(Graph graph);

/// What becomes of nodes in the backward that compute what the forward has computed: where a program asks for
/// that, by a checkpoint inside of another, it may ask twice, rather than keep it in between.
enum class Reruns : uint8_t { Merged, Apart };

/// Merges nodes of one phase that compute the same from the same values; random nodes, nodes that write and
/// values that leave the graph as outputs stay apart.
Graph eliminate_common_subexpressions(Graph graph, Reruns reruns = Reruns::Merged);

/// Computes small nodes that depend on constants alone now; the results become constants of the graph.
Graph fold_constants(Graph graph);

/// Replaces every call that has a row in `table`, repeatedly until none is left; a row that answers with no
/// values leaves its call. The values replaced keep names, dtypes, sizes and strides: where a row's answer
/// lies otherwise in memory a copy is added. The values of written arguments come behind the results.
Graph decompose(Graph graph, const DecompositionTable& table);

/// The named default table: decompositions that make a graph smaller to fuse, each exact up to rounding.
DecompositionTable default_decompositions();

/// Adds a row to (or replaces it in) what `default_decompositions` gives from now on.
void register_decomposition(const std::string& op, Decomposition decomposition);

/// Adds a pass that runs on every graph of a stage: on joint graphs before Tandem's own passes, on the others
/// behind them. A pass that breaks a graph is named in an Error.
void register_pass(Stage stage, Pass pass);
/// The passes registered for a stage, in order.
std::vector<Pass> registered_passes(Stage stage);

}  // namespace tandem
