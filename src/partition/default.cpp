#include <tandem/error.h>
#include <tandem/partition.h>
#include <tandem/passes.h>

namespace tandem {
namespace {

std::vector<Value> first(const std::vector<Value>& values, size_t count) { return {values.begin(), values.begin() + count}; }
std::vector<Value> rest(const std::vector<Value>& values, size_t count) { return {values.begin() + count, values.end()}; }
std::vector<Value> joined(std::vector<Value> values, const std::vector<Value>& more) {
  values.insert(values.end(), more.begin(), more.end());
  return values;
}

void refuse_if_forward_needs_backward(const Joint& joint) {
  const Graph& graph = joint.graph;
  std::vector<bool> late(graph.value_count());
  for (Value v : rest(graph.inputs(), joint.primals)) late[v.id] = true;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.phase == Phase::Backward) {
      for_each_result(node, [&](Value v) { late[v.id] = true; });
      continue;
    }
    for_each_argument(node, [&](Value v) {
      if (late[v.id]) throw Error("a node of the forward reads " + graph.name(v) + ", which only the backward has; record it in the backward\n" + excerpt(graph, i));
    });
  }
  for (Value v : first(graph.outputs(), joint.forward_outputs))
    if (v && late[v.id]) throw Error("the forward returns " + graph.name(v) + ", which only the backward has; make it an output of the backward");
}

/// The nodes of one phase that the outputs need.
Graph half_of(const Graph& joint, Phase phase, std::vector<Value> inputs, std::vector<Value> outputs) {
  Graph half = joint;
  std::erase_if(half.nodes(), [&](const Node& node) { return node.phase != phase; });
  half.set_inputs(std::move(inputs));
  half.set_outputs(std::move(outputs));
  return eliminate_dead_code(std::move(half));
}

/// What `backward` reads of the forward, and what must be saved besides, in the order in which the joint defines it.
std::vector<Value> saved_values(const Joint& joint, const Graph& backward, const std::vector<Value>& must_save) {
  std::vector<bool> read(joint.graph.value_count());
  for (Value v : must_save) read[v.id] = true;
  for (const Node& node : backward.nodes()) for_each_argument(node, [&](Value v) { read[v.id] = true; });
  for (Value v : backward.outputs())
    if (v) read[v.id] = true;
  std::vector<Value> saved;
  auto save_if_read = [&](Value v) {
    if (read[v.id]) saved.push_back(v);
    read[v.id] = false;                      // a value that is both a result and a written argument is saved once
  };
  for (Value v : first(joint.graph.inputs(), joint.primals)) save_if_read(v);
  for (const Node& node : joint.graph.nodes())
    if (node.phase == Phase::Forward) for_each_result(node, save_if_read);
  return saved;
}

}  // namespace

Partition partition_default(const Joint& joint, const PartitionContext& context) {
  if (joint.primals > joint.graph.inputs().size() || joint.forward_outputs > joint.graph.outputs().size())
    throw Error("the joint graph has fewer inputs or outputs than its forward claims; set Joint::primals and Joint::forward_outputs to what the graph has");
  refuse_if_forward_needs_backward(joint);
  const std::vector<Value> primals = first(joint.graph.inputs(), joint.primals), tangents = rest(joint.graph.inputs(), joint.primals);
  const std::vector<Value> outputs = first(joint.graph.outputs(), joint.forward_outputs), gradients = rest(joint.graph.outputs(), joint.forward_outputs);

  Partition halves;
  // With all inputs at first, so that a write of the backward to a primal is seen as one; which of them it reads is known afterwards.
  halves.backward = half_of(joint.graph, Phase::Backward, joint.graph.inputs(), gradients);
  halves.saved = saved_values(joint, halves.backward, context.must_save);
  halves.backward.set_inputs(joined(halves.saved, tangents));
  halves.forward = half_of(joint.graph, Phase::Forward, primals, joined(outputs, halves.saved));
  return halves;
}

}  // namespace tandem
