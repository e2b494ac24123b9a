#include "passes/standard.h"

#include <tandem/error.h>

#include <array>
#include <mutex>

namespace tandem {
namespace {

struct Registry {
  std::mutex mutex;
  std::array<std::vector<Pass>, 4> passes;   ///< by stage
};

Registry& registry() {
  static Registry instance;
  return instance;
}

/// What a pass must leave alone, since callers count on positions at a graph's edges.
void check_edges(const Pass& pass, const Graph& before, const Graph& after) {
  if (before.inputs().size() == after.inputs().size() && before.outputs().size() == after.outputs().size()) return;
  throw Error("the registered pass '" + pass.name + "' changed the number of inputs or outputs of a graph; a pass must keep both");
}

}  // namespace

void register_pass(Stage stage, Pass pass) {
  if (!pass) throw Error("register_pass was given no function under the name '" + pass.name + "'; pass one");
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  all.passes[size_t(stage)].push_back(std::move(pass));
}

std::vector<Pass> registered_passes(Stage stage) {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  return all.passes[size_t(stage)];
}

Graph run_standard_passes(Graph graph, const DecompositionTable& table, Stage stage) {
  for (const Pass& pass : registered_passes(stage)) {
    Graph rewritten = pass(graph);
    check_edges(pass, graph, rewritten);
    rewritten.verify();
    graph = std::move(rewritten);
  }
  if (!table.empty()) graph = decompose(std::move(graph), table);
  graph = remove_identities(std::move(graph));
  graph = fold_constants(std::move(graph));
  graph = eliminate_common_subexpressions(std::move(graph));
  return eliminate_dead_code(std::move(graph));
}

}  // namespace tandem
