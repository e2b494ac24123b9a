#include "passes/standard.h"

#include <tandem/error.h>

#include <array>
#include <mutex>

namespace tandem {
namespace {

struct PassRegistry {
  std::mutex mutex;
  std::array<std::vector<Pass>, 4> passes;  ///< by stage
};

PassRegistry& pass_registry() {
  static PassRegistry instance;
  return instance;
}

/// What a pass must leave alone, since callers count on positions at a graph's edges.
void check_edges(const Graph& before, const Graph& after) {
  if (before.inputs().size() != after.inputs().size() || before.outputs().size() != after.outputs().size())
    throw Error("it changed the number of inputs or outputs; a pass must keep both");
}

}  // namespace

void register_pass(Stage stage, Pass pass) {
  if (!pass) throw Error("register_pass was given no function under the name '" + pass.name + "'; pass one");
  PassRegistry& all = pass_registry();
  std::lock_guard lock(all.mutex);
  all.passes[size_t(stage)].push_back(std::move(pass));
}

std::vector<Pass> registered_passes(Stage stage) {
  PassRegistry& all = pass_registry();
  std::lock_guard lock(all.mutex);
  return all.passes[size_t(stage)];
}

Graph run_passes(Graph graph, const std::vector<Pass>& passes) {
  for (const Pass& pass : passes) {
    Graph rewritten = pass(graph);
    try {
      check_edges(graph, rewritten);
      rewritten.verify();
    } catch (const Error& error) {
      throw Error("the pass '" + pass.name + "' broke a graph: " + error.what());
    }
    graph = std::move(rewritten);
  }
  return graph;
}

Graph run_standard_passes(Graph graph, const DecompositionTable& table, const std::vector<Pass>& joint_passes,
                          Reruns reruns) {
  graph = run_passes(std::move(graph), joint_passes);
  if (!table.empty()) graph = decompose(std::move(graph), table);
  graph = remove_identities(std::move(graph));
  graph = fold_constants(std::move(graph));
  graph = eliminate_common_subexpressions(std::move(graph), reruns);
  return eliminate_dead_code(std::move(graph));
}

}  // namespace tandem
