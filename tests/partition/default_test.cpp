#include "passes/graphs.h"

#include <tandem/error.h>
#include <tandem/partition.h>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

/// Forward, then backward on what the forward saved: must equal the joint.
void expect_halves_equal_joint(const Joint& joint, const Tensors& primals, const Tensors& tangents) {
  Partition halves = partition_default(joint);
  halves.forward.verify();
  halves.backward.verify();
  Tensors all = primals;
  all.insert(all.end(), tangents.begin(), tangents.end());
  Tensors expected = joint.graph.run(std::move(all));
  Tensors outputs = halves.forward.run(Tensors(primals));
  ASSERT_EQ(outputs.size(), joint.forward_outputs + halves.saved.size());
  Tensors arguments(outputs.begin() + joint.forward_outputs, outputs.end());
  arguments.insert(arguments.end(), tangents.begin(), tangents.end());
  Tensors gradients = halves.backward.run(std::move(arguments));
  outputs.resize(joint.forward_outputs);
  outputs.insert(outputs.end(), gradients.begin(), gradients.end());
  ASSERT_EQ(outputs.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(outputs[i].defined(), expected[i].defined());
    if (!expected[i].defined()) continue;
    EXPECT_TRUE(at::equal(outputs[i], expected[i])) << i;
  }
}

Joint layer_norm() {
  GraphWriter w;
  Value x = w.input({2, 4}), weight = w.input({4}), bias = w.input({4}), tangent = w.input({2, 4});
  Node forward = w.node("aten::native_layer_norm", {x, ints({4}), weight, bias, number(1e-5)});
  w.phase = Phase::Backward;
  c10::List<bool> mask({true, true, true});
  Node backward = w.node(
      "aten::native_layer_norm_backward",
      {tangent, x, ints({4}), forward.results[1], forward.results[2], weight, bias, c10::IValue(mask)});
  w.graph.set_outputs({std::get<Value>(forward.results[0]), std::get<Value>(backward.results[0]),
                       std::get<Value>(backward.results[1]), std::get<Value>(backward.results[2])});
  return {w.graph, 3, 1};
}

}  // namespace

TEST(DefaultPartition, F2LayerNormSavesEachResultOnItsOwn) {
  Joint joint = layer_norm();
  Partition halves = partition_default(joint);
  EXPECT_EQ(halves.forward.inputs().size(), 3u);
  EXPECT_EQ(halves.forward.outputs().size(), 6u);
  EXPECT_EQ(halves.backward.inputs().size(), 6u);
  EXPECT_EQ(halves.backward.outputs().size(), 3u);
  Tensors primals{at::rand({2, 4}, at::kDouble), at::rand({4}, at::kDouble), at::rand({4}, at::kDouble)};
  expect_halves_equal_joint(joint, primals, {at::rand({2, 4}, at::kDouble)});
}

TEST(DefaultPartition, F11EveryValueKeepsItsDescription) {
  Joint joint = layer_norm();
  Partition halves = partition_default(joint);
  for (const Graph* half : {&halves.forward, &halves.backward})
    for (const Node& node : half->nodes())
      for_each_result(node, [&](Value v) { EXPECT_EQ(half->meta(v), joint.graph.meta(v)); });
}

TEST(DefaultPartition, AGradientThatIsAPrimalOrAForwardValueIsReturnedThroughSaved) {
  GraphWriter w;
  Value x = w.input({3}), y = w.input({3}), tangent = w.input({3});
  Value sine = w.call("aten::sin", {x});
  w.graph.set_outputs({w.call("aten::cos", {y}), y, sine, tangent, Value()});
  Joint joint{w.graph, 2, 1};
  EXPECT_EQ(partition_default(joint).saved, (std::vector<Value>{y, sine}));
  expect_halves_equal_joint(joint, {at::rand({3}, at::kDouble), at::rand({3}, at::kDouble)},
                            {at::rand({3}, at::kDouble)});
}

TEST(DefaultPartition, ForwardNodesThatOnlyTheBackwardNeedsRunInTheForward) {
  GraphWriter w;
  Value x = w.input({3}), tangent = w.input({3});
  Value out = w.call("aten::sin", {x}), slope = w.call("aten::cos", {x});
  w.phase = Phase::Backward;
  w.graph.set_outputs({out, w.call("aten::mul.Tensor", {tangent, slope})});
  Partition halves = partition_default({w.graph, 1, 1});
  EXPECT_EQ(halves.forward.nodes().size(), 2u);
  EXPECT_EQ(halves.saved, std::vector<Value>{slope});
}

TEST(DefaultPartition, DeadNodesAndForeignConstantsGoFromBothHalves) {
  GraphWriter w;
  Value x = w.input({3}), tangent = w.input({3});
  Value two = w.constant(at::full({3}, 2.0, at::kDouble)),
        three = w.constant(at::full({3}, 3.0, at::kDouble));
  Value out = w.call("aten::mul.Tensor", {x, two});
  w.call("aten::sin", {out});
  w.phase = Phase::Backward;
  Value gradient = w.call("aten::mul.Tensor", {tangent, three});
  w.call("aten::mul.Tensor", {tangent, out});
  w.graph.set_outputs({out, gradient});
  Partition halves = partition_default({w.graph, 1, 1});
  EXPECT_TRUE(halves.saved.empty());
  EXPECT_EQ(halves.forward.nodes().size(), 1u);
  EXPECT_EQ(halves.backward.nodes().size(), 1u);
  ASSERT_EQ(halves.forward.constants().size(), 1u);
  EXPECT_EQ(halves.forward.constants()[0].first, two);
  ASSERT_EQ(halves.backward.constants().size(), 1u);
  EXPECT_EQ(halves.backward.constants()[0].first, three);
}

TEST(DefaultPartition, AValueThatIsOutputAndSavedAppearsTwice) {
  GraphWriter w;
  Value x = w.input({3}), tangent = w.input({3});
  Value out = w.call("aten::exp", {x});
  w.phase = Phase::Backward;
  w.graph.set_outputs({out, w.call("aten::mul.Tensor", {tangent, out})});
  Joint joint{w.graph, 1, 1};
  EXPECT_EQ(partition_default(joint).forward.outputs(), (std::vector<Value>{out, out}));
  expect_halves_equal_joint(joint, {at::rand({3}, at::kDouble)}, {at::rand({3}, at::kDouble)});
}

TEST(DefaultPartition, AWriteToAnInputStaysInItsPhase) {
  for (Phase phase : {Phase::Forward, Phase::Backward}) {
    GraphWriter w;
    Value x = w.input({3}), tangent = w.input({3});
    w.phase = phase;
    Value doubled = w.call("aten::mul.Scalar", {x, number(2.0)});
    Value after = w.graph.add_value(w.graph.meta(x));
    w.graph.add_node(
        Node{find_op("aten::copy_"), {x, doubled, c10::IValue(false)}, {after}, {{x, after}}, phase});
    w.graph.set_outputs({Value(), tangent});
    Partition halves = partition_default({w.graph, 1, 1});
    EXPECT_EQ(halves.forward.nodes().size(), phase == Phase::Forward ? 2u : 0u);
    EXPECT_EQ(halves.backward.nodes().size(), phase == Phase::Forward ? 0u : 2u);
  }
}

TEST(DefaultPartition, AForwardThatNeedsTheBackwardIsAnError) {
  GraphWriter w;
  Value x = w.input({3}), tangent = w.input({3});
  Value sum = w.call("aten::add.Tensor", {x, tangent});
  w.graph.set_outputs({sum});
  EXPECT_THROW(partition_default({w.graph, 1, 1}), Error);
  GraphWriter v;
  v.input({3});
  v.graph.set_outputs({v.input({3})});
  EXPECT_THROW(partition_default({v.graph, 1, 1}), Error);
  EXPECT_THROW(partition_default({v.graph, 5, 1}), Error);
}

TEST(DefaultPartition, WhatMustBeSavedIsSaved) {
  GraphWriter w;
  Value x = w.input({3}), tangent = w.input({3});
  Value sine = w.call("aten::sin", {x}), cosine = w.call("aten::cos", {sine});
  w.phase = Phase::Backward;
  Value gradient = w.call("aten::mul.Tensor", {tangent, x});
  w.graph.set_outputs({cosine, gradient});
  const Joint joint{w.graph, 1, 1};
  EXPECT_EQ(partition_default(joint).saved, (std::vector<Value>{x}));
  const PartitionContext context{.must_save = {sine}};
  const Partition halves = partition_default(joint, context);
  EXPECT_EQ(halves.saved, (std::vector<Value>{x, sine}));
  verify(halves, joint, context, "default");
}

TEST(Partitioners, AreNamedWhenTheySplitWrongly) {
  const Joint joint = layer_norm();
  const Partition right = partition_default(joint);
  auto complaint = [&](const Partition& halves, const PartitionContext& context = {}) {
    try {
      verify(halves, joint, context, "careless");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  auto expect_complaint = [&](const Partition& halves, const std::string& part,
                              const PartitionContext& context = {}) {
    const std::string said = complaint(halves, context);
    EXPECT_NE(said.find("careless"), said.npos) << said;
    EXPECT_NE(said.find(part), said.npos) << said;
  };
  EXPECT_EQ(complaint(right), "");

  Partition wrong = right;
  std::swap(wrong.saved[0], wrong.saved[1]);
  expect_complaint(wrong, "then the saved values");
  wrong = right;
  wrong.forward.set_inputs({});
  expect_complaint(wrong, "forward is not well formed");
  wrong = right;
  wrong.backward.set_outputs({wrong.backward.outputs()[0]});
  expect_complaint(wrong, "gradients");
  expect_complaint(right, "must_save", {.must_save = {joint.graph.outputs()[0]}});
}

TEST(Partitioners, AreFoundByName) {
  EXPECT_TRUE(find_partitioner("default"));
  register_partitioner(
      "mine", Partitioner([](const Joint& joint,
                             const PartitionContext& context) { return partition_default(joint, context); },
                          "mine", "2"));
  EXPECT_EQ(find_partitioner("mine").version, "2");
  try {
    find_partitioner("nobody's");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("default, min_cut, mine"), std::string::npos) << error.what();
  }
}

}  // namespace tandem
