// Partitioners that recompute: what they save, and that forward and backward give what the joint gives.
#include "partition/halves.h"
#include "partition/split.h"

#include <tandem/error.h>

namespace tandem {
namespace {

/// What is written so far gives `out`, and its gradient is the tangent times `factor`.
Joint with_gradient(GraphWriter& w, Value out, Value tangent, Value factor) {
  w.phase = Phase::Backward;
  w.graph.set_outputs({out, w.call("aten::mul.Tensor", {tangent, factor})});
  return {w.graph, 1, 1};
}

}  // namespace

TEST(RecomputeAll, SavesACopyOfTheInputAndTheStateOfTheGenerator) {
  const Joint joint = dropped_sine();
  const Partition halves = partition_recompute_all(joint);
  ASSERT_EQ(halves.saved.size(), 2u);
  EXPECT_TRUE(has_call(halves.forward, "tandem::generator_state"));
  EXPECT_TRUE(has_call(halves.backward, "aten::sin") && has_call(halves.backward, "aten::native_dropout"));
  for (const Node& node : halves.backward.nodes())
    EXPECT_EQ(bool(node.state), node.op.operator_name().name == "aten::native_dropout");
  expect_joint(joint, halves);
}

TEST(RecomputeAll, SavesWhatMustBeSaved) {
  const Joint joint = dropped_sine();
  const Value sine = std::get<Value>(joint.graph.nodes()[0].results[0]);
  const PartitionContext context{.must_save = {sine}};
  const Partition halves = partition_recompute_all(joint, context);
  verify(halves, joint, context, "tested");
  EXPECT_FALSE(has_call(halves.backward, "aten::sin"));
  expect_joint(joint, halves);
}

TEST(RecomputeAll, TakesTheConstantsAlongThatItReadsAgain) {
  GraphWriter w;
  const Value x = w.input({8}), tangent = w.input({8}), constant = w.constant(at::rand({8}, at::kDouble));
  const Value sum = w.call("aten::add.Tensor", {x, constant}), out = w.call("aten::sin", {sum});
  const Joint joint = with_gradient(w, out, tangent, sum);
  const Partition halves = partition_recompute_all(joint);
  EXPECT_TRUE(has_call(halves.backward, "aten::add"));
  expect_joint(joint, halves);
}

TEST(SaveAll, SavesEverythingInMemoryOfItsOwnAndRunsNothingAgain) {
  const Joint joint = dropped_sine();
  const Partition halves = partition_save_all(joint);
  // the sine, what is left of it, the mask; not what is returned
  EXPECT_EQ(halves.saved.size(), 3u);
  EXPECT_FALSE(has_call(halves.backward, "aten::sin") || has_call(halves.backward, "aten::native_dropout"));
  expect_joint(joint, halves);
}

TEST(SplitAt, RunsAgainWhatLiesBehindTheChosenValues) {
  const Joint joint = with_generator_states(dropped_sine());
  std::vector<bool> chosen(joint.graph.value_count());
  chosen[size_t(std::get<Value>(joint.graph.nodes()[0].results[0]).id)] = true;
  const Partition halves = split_at(joint, {}, Recomputation(joint), chosen);
  EXPECT_EQ(halves.saved.size(), 2u);  // the sine and the state
  EXPECT_FALSE(has_call(halves.backward, "aten::sin"));
  EXPECT_TRUE(has_call(halves.backward, "aten::native_dropout"));
  expect_joint(joint, halves);
}

TEST(SplitAt, WhatTheForwardWritesIntoAnInputIsReadFromACopyOfBefore) {
  GraphWriter w;
  const Value x = w.input({8}), tangent = w.input({8});
  const Value sine = w.call("aten::sin", {x}), cosine = w.call("aten::cos", {sine});
  const Value out = w.call("aten::exp", {cosine}), after = w.graph.add_value(w.graph.meta(x));
  w.graph.add_node(Node{find_op("aten::copy_"), {x, cosine, c10::IValue(false)}, {after}, {{x, after}}});
  const Joint joint = with_gradient(w, out, tangent, sine);
  const Partition halves = partition_recompute_all(joint);
  EXPECT_TRUE(has_call(halves.backward, "aten::sin"));
  expect_joint(joint, halves);
}

TEST(SplitAt, WhatRunsAgainReadsNothingFromAnOutput) {
  GraphWriter w;
  const Value x = w.input({8}), first = w.input({8}), second = w.input({8});
  const Value sine = w.call("aten::sin", {x}), cosine = w.call("aten::cos", {sine});
  const Value out = w.call("aten::exp", {cosine});
  w.phase = Phase::Backward;
  const Value of_sine = w.call("aten::mul.Tensor", {first, sine});
  w.graph.set_outputs({sine, out, of_sine, w.call("aten::mul.Tensor", {second, cosine})});
  const Joint joint{w.graph, 1, 2};
  const Partition halves = partition_recompute_all(joint);
  verify(halves, joint, {}, "tested");
  const at::Tensor input = at::rand({8}, at::kDouble), ones = at::ones({8}, at::kDouble);
  Tensors outputs = halves.forward.run({input.clone()});
  ASSERT_EQ(outputs.size(), 4u);  // with the copy of the input, and the sine
  outputs[0].fill_(99);
  const Tensors gradients = halves.backward.run({outputs[2], outputs[3], ones, ones});
  EXPECT_TRUE(at::equal(gradients[0], at::full({8}, 99.0, at::kDouble)));  // refused when compiled
  EXPECT_TRUE(at::equal(gradients[1], input.sin().cos()));
}

TEST(Recomputation, LeavesSideEffectsAndUnsetMemoryAlone) {
  GraphWriter w;
  const Value x = w.input({8}), tangent = w.input({8});
  const Value unset = w.call("aten::empty_like", {x});
  w.node("aten::_assert_async", {w.call("aten::sum", {x})});
  const Value out = w.call("aten::add.Tensor", {x, unset});
  const Partition halves = partition_recompute_all(with_gradient(w, out, tangent, unset));
  EXPECT_EQ(halves.saved, std::vector<Value>{unset});
  EXPECT_TRUE(has_call(halves.forward, "aten::_assert_async"));
  EXPECT_FALSE(has_call(halves.backward, "aten::_assert_async"));
}

}  // namespace tandem
