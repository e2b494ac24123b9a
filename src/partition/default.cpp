#include "partition/split.h"

namespace tandem {
namespace {

std::vector<Value> first(const std::vector<Value>& values, size_t count) {
  return {values.begin(), values.begin() + count};
}
std::vector<Value> rest(const std::vector<Value>& values, size_t count) {
  return {values.begin() + count, values.end()};
}

/// What `backward` reads of the forward, and what must be saved besides, in the order in which the joint
/// defines it.
std::vector<Value> saved_values(const Joint& joint, const Graph& backward,
                                const std::vector<Value>& must_save) {
  std::vector<bool> read(joint.graph.value_count());
  for (Value v : must_save) read[v.id] = true;
  for (const Node& node : backward.nodes()) for_each_argument(node, [&](Value v) { read[v.id] = true; });
  for (Value v : backward.outputs())
    if (v) read[v.id] = true;
  std::vector<Value> saved;
  auto save_if_read = [&](Value v) {
    if (read[v.id]) saved.push_back(v);
    // a value that is both a result and a written argument is saved once
    read[v.id] = false;
  };
  for (Value v : first(joint.graph.inputs(), joint.primals)) save_if_read(v);
  for (const Node& node : joint.graph.nodes())
    if (node.phase == Phase::Forward) for_each_result(node, save_if_read);
  return saved;
}

/// Where nothing is fused, what is marked is all that may be computed again.
Partition smallest_where_marked(const Joint& joint, PartitionContext context) {
  context.memory_budget = 1;
  context.memory_budget_bytes.reset();
  context.fuses = {};
  return partition_min_cut(joint, context);
}

}  // namespace

Partition partition_default(const Joint& joint, const PartitionContext& context) {
  refuse_if_forward_needs_backward(joint);
  if (!context.marked_prefer_recompute.empty()) return smallest_where_marked(joint, context);
  const std::vector<Value> primals = first(joint.graph.inputs(), joint.primals),
                           tangents = rest(joint.graph.inputs(), joint.primals);
  const std::vector<Value> outputs = first(joint.graph.outputs(), joint.forward_outputs),
                           gradients = rest(joint.graph.outputs(), joint.forward_outputs);

  Partition halves;
  // With all inputs at first, so that a write of the backward to a primal is seen as one; which of them it
  // reads is known afterwards.
  halves.backward = half_of(joint.graph, Phase::Backward, joint.graph.inputs(), gradients);
  halves.saved = saved_values(joint, halves.backward, context.must_save);
  halves.backward.set_inputs(joined(halves.saved, tangents));
  halves.forward = half_of(joint.graph, Phase::Forward, primals, joined(outputs, halves.saved));
  return halves;
}

}  // namespace tandem
