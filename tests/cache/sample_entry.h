/// An entry with something in every place, small enough to be attacked many thousand times a second.
#pragma once

#include <ATen/ATen.h>

#include "graph/graph_bytes.h"
#include "cache/record.h"
#include "graph/build.h"

namespace tandem::test {

/// tanh(x @ w) and, behind it, its gradients; a gap between the ids, names and places.
inline Joint sample_joint() {
  Joint joint;
  Graph& graph = joint.graph;
  const Value x = graph.add_input(dense({2, 3}, 0), "x"),
              w = graph.add_input(dense({3, 2}, 1), "layer.weight");
  graph.meta(w).requires_grad = graph.meta(x).requires_grad = true;
  const Value product = call(graph, "aten::mm", {x, w}, dense({2, 2}, 2));
  graph.add_value(dense({7}, 40));
  const Value y = call(graph, "aten::tanh", {product}, dense({2, 2}, 3));
  graph.nodes().back().location = "model.cpp:12";
  const Value tangent = graph.add_input(dense({2, 2}, 4), "tangent");
  const Value before = call(graph, "aten::tanh_backward", {tangent, y}, dense({2, 2}, 5), Phase::Backward);
  TensorMeta turned = dense({2, 3}, 1);
  turned.strides = {1, 2};
  const Value w_turned = call(graph, "aten::t", {w}, turned, Phase::Backward);
  const Value of_x = call(graph, "aten::mm", {before, w_turned}, dense({2, 3}, 6), Phase::Backward);
  TensorMeta x_turned_meta = dense({3, 2}, 0);
  x_turned_meta.strides = {1, 3};
  const Value x_turned = call(graph, "aten::t", {x}, x_turned_meta, Phase::Backward);
  const Value of_w = call(graph, "aten::mm", {x_turned, before}, dense({3, 2}, 7), Phase::Backward);
  graph.set_outputs({y, of_x, of_w});
  joint.primals = 2;
  joint.forward_outputs = 1;
  return joint;
}

/// Three inputs, calls with constants of every kind, constant tensors, a write, several results, a list of
/// tensors, and an output that is not there.
inline Graph sample_of_constants() {
  Graph graph;
  const Value x = graph.add_input(dense({2, 3}, 0), "x"), y = graph.add_input(dense({3, 2}, 1)),
              tangent = graph.add_input(dense({2, 2}, 2), "two words");
  const Value table =
      graph.add_constant(dense({2, 2}, 3, at::kLong), at::tensor({1, 2, 3, 4}, at::kLong).view({2, 2}));
  const Value mask =
      graph.add_constant(dense({2}, 4, at::kBool), at::tensor({1, 0}, at::kLong).to(at::kBool));
  using c10::IValue;
  const Value twice = call(graph, "aten::mul.Tensor", {tangent, number(2.5)}, dense({2, 2}, 5));
  const Value sum =
      call(graph, "aten::sum.dim_IntList",
           {twice, IValue(std::vector<int64_t>{0, 1}), IValue(true), IValue(int64_t(at::kDouble))},
           dense({1, 1}, 6, at::kDouble));
  const Value floor =
      call(graph, "aten::div.Tensor_mode", {sum, twice, IValue("floor")}, dense({2, 2}, 7, at::kDouble));
  const Value fresh =
      call(graph, "aten::empty.memory_format",
           {IValue(std::vector<int64_t>{2, 2}), IValue(int64_t(at::kFloat)), IValue(int64_t(at::kStrided)),
            IValue(c10::Device(c10::kCPU)), IValue(false), IValue()},
           dense({2, 2}, 8));
  const Value written = graph.add_value(dense({2, 2}, 8));
  graph.add_node(Node{op("aten::add_.Tensor"),
                      {fresh, twice, IValue(1)},
                      {written},
                      {{fresh, written}},
                      Phase::Backward,
                      "model.cpp:20"});
  const Value both =
      call(graph, "aten::cat", {std::vector<Value>{written, twice}, IValue(1)}, dense({2, 4}, 9));
  const Value values = graph.add_value(dense({2, 1}, 10)),
              places = graph.add_value(dense({2, 1}, 11, at::kLong));
  graph.add_node(Node{op("aten::topk"),
                      {both, IValue(1), IValue(-1), IValue(true), IValue(true)},
                      {values, places},
                      {},
                      Phase::Forward,
                      {}});
  const Value taken =
      call(graph, "aten::index.Tensor", {x, std::vector<Value>{table, Value{}}}, dense({2, 2, 3}, 12));
  const Value filled = call(graph, "aten::masked_fill.Scalar",
                            {y, mask, IValue(c10::complex<double>(0.5, -2))}, dense({3, 2}, 13));
  graph.set_outputs({floor, taken, Value{}, filled, values});
  return graph;
}

inline cache::StoredBackward sample_backward(const cache::StoredOrder& order) {
  cache::StoredBackward code;
  code.variant = order.expected;
  for (size_t i = 0; i < order.halves.saved.size(); ++i) code.saved.push_back(i);
  code.gradients = {0, 1};
  code.graph = order.halves.backward;
  code.artifact = std::string(64, 'b');
  return code;
}

/// The first order, with its expected backward and another one, and a second order without a backward.
inline cache::StoredOrder sample_order() {
  const Joint joint = sample_joint();
  cache::StoredOrder order;
  order.joint = cache::pack(joint);
  order.halves = partition_default(joint);
  order.marked = {1};
  order.artifact = std::string(63, '0') + "f";
  order.returned = 1;
  order.expected = {{Tangent{joint.graph.meta(joint.graph.inputs()[2])}}, {true, true}};
  order.backwards.push_back(sample_backward(order));

  cache::StoredBackward other = order.backwards[0];
  other.variant.wanted = {false, true};
  other.saved = {1, 0};
  other.gradients = {-1, 4};
  other.graph = sample_of_constants();
  other.artifact = std::string(64, '7');
  order.backwards.push_back(other);

  cache::StoredOrder second;
  second.joint = order.joint;
  second.halves.forward = order.halves.backward;
  second.artifact = std::string(64, 'c');
  second.returned = 2;
  second.expected = {{std::nullopt, Tangent{joint.graph.meta(joint.graph.inputs()[1]), /*zero=*/true}},
                     {true, false, true}};
  second.has_expected = false;
  second.variant = order.expected;
  second.variant.tangents[0]->requires_grad = true;
  second.taken = order.backwards[0].saved;
  second.gradients = {1, -1};
  second.differentiable = {0, 1};
  order.above.push_back(second);
  return order;
}

inline cache::StoredEntry sample_entry() {
  cache::StoredEntry entry;
  entry.components = {{"trace", "0123", "graph() {}"}, {"backend", "4567", ""}};
  entry.contract = "inputs: x\noutputs: fresh";
  entry.options = "partitioner=default";
  entry.backend = "eager";
  entry.backend_version = "1.2";
  entry.machine = "a processor";
  entry.nodes_recorded = 1234;
  entry.eager_saved_bytes = 48;
  entry.reads_offsets = true;
  entry.trace_seconds = 0.25;
  entry.forward_seconds = 1.5;
  entry.backward_seconds = 3e-6;
  entry.first = sample_order();
  return entry;
}

/// Calls `visit(graph)` for every graph of an order and of those above, but for packed ones.
template <class Visit>
void for_each_graph(const cache::StoredOrder& order, Visit&& visit) {
  visit(order.halves.forward);
  visit(order.halves.backward);
  for (const cache::StoredBackward& code : order.backwards) visit(code.graph_in(order.halves));
  for (const cache::StoredOrder& next : order.above) for_each_graph(next, visit);
}

}  // namespace tandem::test
