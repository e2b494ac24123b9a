// Narrow forms of values of which a backward reads a part: when they are made, when they are kept, and when
// nothing is left of them.
#include "partition/narrow.h"

#include <cmath>

#include "partition/halves.h"

namespace tandem {
namespace {

bool fuses_comparisons(const Graph&, const Node& node) {
  const std::string& name = node.op.operator_name().name;
  return name == "aten::le" || name == "aten::where";
}

/// x -> sum of relu(cos(x)); with `whole` the gradient reads the relu's result as well.
Joint relu_of_cosine(bool whole) {
  GraphWriter w;
  const Value x = w.input({8}), tangent = w.input({8});
  const Value relu = w.call("aten::relu", {w.call("aten::cos", {x})});
  const Value out = w.call("aten::neg", {relu});
  w.phase = Phase::Backward;
  Value gradient = w.call("aten::threshold_backward", {tangent, relu, number(int64_t(0))});
  if (whole) gradient = w.call("aten::mul.Tensor", {gradient, relu});
  w.graph.set_outputs({out, gradient});
  return {w.graph, 1, 1};
}

size_t calls_of_name(const Graph& graph, const std::string& name) {
  return size_t(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                              [&](const Node& n) { return n.op.operator_name().name == name; }));
}

Partition straight(Partition halves) {
  halves.backward = without_detours(std::move(halves.backward));
  return halves;
}

}  // namespace

TEST(NarrowForms, AreChosenWhereTheyAreSmaller) {
  const Joint joint = with_narrow_forms(relu_of_cosine(false), {});
  const Partition halves = straight(partition_min_cut(joint, {.fuses = fuses_comparisons}));
  ASSERT_EQ(halves.saved.size(), 1u);
  EXPECT_EQ(halves.forward.meta(halves.saved[0]).dtype, at::kBool);
  EXPECT_EQ(calls_of_name(halves.backward, "aten::threshold_backward"), 0u);
  expect_joint(relu_of_cosine(false), halves);
}

TEST(NarrowForms, LeaveNothingBehindWhereTheValueIsKept) {
  const Joint joint = with_narrow_forms(relu_of_cosine(true), {});
  const Partition halves = straight(partition_min_cut(joint));
  ASSERT_EQ(halves.saved.size(), 1u);
  EXPECT_EQ(halves.forward.meta(halves.saved[0]).dtype, at::kDouble);
  EXPECT_EQ(halves.backward.nodes().size(), 2u) << halves.backward.to_string();
  EXPECT_FALSE(has_call(halves.forward, "aten::le"));
  expect_joint(relu_of_cosine(true), halves);
}

TEST(NarrowForms, AreMadeOnlyWhereTheBackendFusesThem) {
  const Joint joint = relu_of_cosine(false);
  const auto fuses_none = [](const Graph&, const Node&) { return false; };
  EXPECT_EQ(with_narrow_forms(joint, {.fuses = fuses_none}).graph.to_string(), joint.graph.to_string());
  EXPECT_TRUE(has_call(with_narrow_forms(joint, {.fuses = fuses_comparisons}).graph, "aten::le"));
}

TEST(NarrowForms, AreNoneOfInputsOutputsAndOtherThresholds) {
  GraphWriter w;
  const Value x = w.input({8}), tangent = w.input({8});
  const Value returned = w.call("aten::relu", {x}), own = w.call("aten::cos", {x});
  w.phase = Phase::Backward;
  Value gradient = w.call("aten::threshold_backward", {tangent, returned, number(int64_t(0))});
  gradient = w.call("aten::threshold_backward", {gradient, x, number(int64_t(0))});
  gradient = w.call("aten::threshold_backward", {gradient, own, number(0.5)});
  w.graph.set_outputs({returned, gradient});
  EXPECT_EQ(with_narrow_forms({w.graph, 1, 1}, {}).graph.to_string(), w.graph.to_string());
}

TEST(NarrowForms, CopiesThatWrapStay) {
  GraphWriter w;
  const Value x = w.input({4}, at::kLong);
  const Value small = w.call("aten::_to_copy", {x, c10::IValue(int64_t(at::kByte))});
  w.graph.set_outputs({w.call("aten::_to_copy", {small, c10::IValue(int64_t(at::kLong))})});
  const Graph same = without_detours(w.graph);
  EXPECT_EQ(same.to_string(), w.graph.to_string());
  EXPECT_EQ(same.run({at::tensor({1, 300, -1, 2}, at::kLong)})[0][1].item<int64_t>(), 300 - 256);
}

TEST(NarrowForms, OfNanInfinityAndZerosGiveWhatTheThresholdGives) {
  const Joint joint = relu_of_cosine(false);
  const Joint narrow = with_narrow_forms(joint, {});
  const at::Tensor x = at::tensor({0.0, -0.0, INFINITY, -INFINITY, double(NAN), 3.0, 1.5, -3.0}, at::kDouble);
  const at::Tensor tangent =
      at::tensor({-0.0, 0.0, 1.0, double(NAN), double(NAN), -0.0, INFINITY, NAN}, at::kDouble);
  const at::Tensor want = joint.graph.run({x, tangent})[1], got = narrow.graph.run({x, tangent})[1];
  EXPECT_EQ(std::memcmp(got.const_data_ptr(), want.const_data_ptr(), want.nbytes()), 0) << got << want;
}

}  // namespace tandem
