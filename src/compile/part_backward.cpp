#include "compile/part_backward.h"

#include <tandem/passes.h>

#include "graph/draws.h"
#include "graph/uses.h"
#include "ops/facts.h"

namespace tandem {

PartBackward backward_of(const OrderPart& part, const Partition& halves) {
  PartBackward made{halves.backward};
  const std::vector<Value> inputs = halves.backward.inputs(), outputs = halves.backward.outputs();
  const auto first_output = outputs.begin() + int64_t(part.first_leaf);
  made.graph.set_outputs({first_output, first_output + int64_t(part.leaves)});
  made.graph = eliminate_dead_code(std::move(made.graph));
  for (const Node& node : made.graph.nodes())
    made.stands_alone = made.stands_alone && !facts(node.op).side_effect && !draws_live(node);

  const std::vector<int32_t> reads = read_counts(made.graph);
  const size_t saved = halves.saved.size(), first_tangent = saved + part.first_source;
  std::vector<Value> taken;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_read = reads[size_t(inputs[i].id)] > 0;
    const bool is_own_tangent = i >= first_tangent && i < first_tangent + part.sources;
    if (i >= saved && !is_own_tangent && is_read) made.stands_alone = false;
    if (i < saved ? !is_read : !is_own_tangent) continue;
    if (i < saved) made.saved.push_back(i);
    taken.push_back(inputs[i]);
  }
  if (made.stands_alone) made.graph.set_inputs(std::move(taken));
  return made;
}

}  // namespace tandem
