// With TANDEM_PARTITIONER set the partitioner of a test program is the one of that name, or for "budgets"
// min_cut at a memory budget that differs from graph to graph. Whatever the tests expect of compiled code
// holds however it is split.
#include <tandem/options.h>
#include <tandem/partition.h>

#include <cstdlib>

namespace {

tandem::Partition split_at_some_budget(const tandem::Joint& joint, tandem::PartitionContext context) {
  context.memory_budget = double(joint.graph.nodes().size() % 11) / 10;
  return tandem::partition_min_cut(joint, context);
}

const bool is_split_otherwise = [] {
  const char* name = std::getenv("TANDEM_PARTITIONER");
  if (!name) return false;
  tandem::Partitioner budgets(&split_at_some_budget, "budgets", "1");
  budgets.takes_narrow_forms = true;
  tandem::register_partitioner("budgets", budgets);
  tandem::register_partitioner(tandem::Options{}.partitioner, tandem::find_partitioner(name));
  return true;
}();

}  // namespace
