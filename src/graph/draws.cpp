#include "graph/draws.h"

#include "ops/facts.h"
#include "ops/generator_state.h"

namespace tandem {

c10::IValue own_generator(const Node& node) {
  for (const Operand& argument : node.arguments)
    if (auto* constant = std::get_if<c10::IValue>(&argument);
        constant && constant->isGenerator() && constant->toGenerator().defined())
      return *constant;
  return {};
}

bool draws_live(const Node& node) { return facts(node.op).random && !node.state; }

c10::Device drawn_on(const Graph& graph, const Node& node) {
  if (c10::IValue own = own_generator(node); own.isGenerator()) return own.toGenerator().device();
  std::optional<c10::Device> device;
  for_each_result(node, [&](Value made) {
    if (!device && made != node.next_state) device = graph.meta(made).device;
  });
  for (const auto& [before, after] : node.writes)
    if (!device) device = graph.meta(before).device;
  return device.value_or(c10::kCPU);
}

bool can_be_replayed(const Graph& graph, const Node& node) {
  return can_draw_from_state(node.op, drawn_on(graph, node));
}

Node state_before(Graph& graph, const Node& random) {
  const c10::Device device = drawn_on(graph, random);
  const Value state = graph.add_value(state_meta(graph, device));
  Node node{generator_state_operator(), {c10::IValue(device), own_generator(random)}, {state}};
  node.phase = random.phase;
  node.location = random.location;
  return node;
}

TensorMeta state_meta(Graph& graph, c10::Device device) {
  TensorMeta meta;
  meta.dtype = at::kByte;
  meta.sizes = {generator_state_bytes(device)};
  meta.strides = {1};
  meta.storage = graph.fresh_storage();
  return meta;
}

}  // namespace tandem
