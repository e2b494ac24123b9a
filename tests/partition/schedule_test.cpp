// In which order the halves run, and what a step is predicted to take.
#include "partition/schedule.h"

#include "partition/halves.h"
#include "partition/peak.h"
#include "partition/workspace.h"

namespace tandem {
namespace {

constexpr int64_t size = 1000;

std::vector<std::string> calls_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) names.push_back(node.op.operator_name().name);
  return names;
}

Partition forward_alone(const Graph& graph) { return partition_default({graph, graph.inputs().size(), 1}); }

/// Four values of which each is only there to be summed up, recorded before the first sum.
Value add_wide(GraphWriter& w, Value x) {
  std::vector<Value> made;
  for (int i = 0; i < 4; ++i) made.push_back(w.call("aten::exp", {x}));
  Value sum;
  for (Value v : made) {
    const Value total = w.call("aten::sum", {v, c10::IValue()});
    sum = sum ? w.call("aten::add.Tensor", {sum, total, number(int64_t(1))}) : total;
  }
  return sum;
}

Graph wide() {
  GraphWriter w;
  w.graph.set_outputs({add_wide(w, w.input({size}))});
  return w.graph;
}

}  // namespace

TEST(Schedule, UsesAValueUpBeforeTheNextIsMade) {
  const Graph graph = wide();
  const Partition before = forward_alone(graph), after = scheduled(before);
  EXPECT_GT(predicted_peaks(before).forward, 4 * size * 8);
  EXPECT_LT(predicted_peaks(after).forward, 2 * size * 8);
  const at::Tensor x = at::rand({size}, at::kDouble);
  EXPECT_TRUE(at::equal(after.forward.run({x})[0], graph.run({x})[0]));
}

TEST(Schedule, LeavesTheRecordAsItIsWhereThePeakIsNot) {
  GraphWriter w;
  const Value small = w.input({size / 20}), large = w.input({size});
  const Value first = add_wide(w, small);
  const size_t away_from_peak = w.graph.nodes().size();
  w.graph.set_outputs({w.call("aten::add.Tensor", {first, add_wide(w, large), number(int64_t(1))})});
  const Partition before = forward_alone(w.graph), after = scheduled(before);
  EXPECT_LT(predicted_peaks(after).forward, 2 * size * 8);
  std::vector<std::string> want = calls_of(before.forward), got = calls_of(after.forward);
  EXPECT_NE(got, want);
  want.resize(away_from_peak);
  got.resize(away_from_peak);
  EXPECT_EQ(got, want);
}

TEST(Schedule, LeavesDrawsInTheirOrder) {
  GraphWriter w;
  const Value large = w.input({size}), small = w.input({1});
  const Value made = w.call("aten::exp", {large});
  const Value first = w.call("aten::bernoulli", {large, c10::IValue()}),
              second = w.call("aten::bernoulli", {small, c10::IValue()});
  const Value sum = w.call("aten::sum", {made, c10::IValue()});
  const Value drawn = w.call("aten::sub.Tensor", {w.call("aten::sum", {first, c10::IValue()}), second});
  w.graph.set_outputs({w.call("aten::mul.Tensor", {sum, drawn})});
  const Partition before = forward_alone(w.graph), after = scheduled(before);
  EXPECT_LT(predicted_peaks(after).forward, predicted_peaks(before).forward);
  const Tensors in{at::full({size}, 0.5, at::kDouble), at::full({1}, 0.5, at::kDouble)};
  for (uint64_t seed = 0; seed < 8; ++seed) {
    at::manual_seed(seed);
    const at::Tensor want = w.graph.run(Tensors(in))[0];
    at::manual_seed(seed);
    EXPECT_TRUE(at::equal(after.forward.run(Tensors(in))[0], want));
  }
}

TEST(Schedule, LeavesAGraphAsItIsWhereNothingIsGained) {
  GraphWriter w;
  const Value x = w.input({size});
  const Value up = w.call("aten::exp", {x}), down = w.call("aten::neg", {x});
  w.graph.set_outputs({w.call("aten::mul.Tensor", {up, down})});
  const Partition halves = forward_alone(w.graph);
  EXPECT_EQ(calls_of(scheduled(halves).forward), calls_of(halves.forward));
}

TEST(Schedule, ReadsWhatIsWrittenBeforeTheWriteAsRecorded) {
  GraphWriter w;
  const Value x = w.input({size}), other = w.input({size});
  const Value next = w.call("aten::add.Tensor", {x, other, number(int64_t(1))});
  const Value sum = w.call("aten::sum", {w.call("aten::exp", {x}), c10::IValue()});
  const Value written = w.graph.add_value(w.graph.meta(x));
  w.graph.add_node(Node{
      find_op("aten::copy_"), {x, next, c10::IValue(false)}, {written}, {{x, written}}, Phase::Forward, ""});
  w.graph.set_outputs({sum});
  const Partition halves = scheduled(forward_alone(w.graph));
  const at::Tensor a = at::rand({size}, at::kDouble), b = at::rand({size}, at::kDouble);
  EXPECT_TRUE(at::equal(halves.forward.run({a.clone(), b})[0], a.exp().sum()));
}

TEST(PredictedPeak, CountsWhatConvolutionsLayOutAnew) {
  GraphWriter w;
  const Value image = w.input({2, 4, 8, 8}, at::kFloat, {256, 1, 32, 4});
  const Value weight = w.input({4, 4, 3, 3}, at::kFloat, {36, 1, 12, 4});
  const Node convolution =
      w.node("aten::convolution", {image, weight, c10::IValue(), ints({1, 1}), ints({1, 1}), ints({1, 1}),
                                   c10::IValue(false), ints({0, 0}), number(int64_t(1))});
  EXPECT_EQ(workspace_bytes(w.graph, convolution), 4 * 4 * 3 * 3 * 4);
  w.graph.set_outputs({std::get<Value>(convolution.results[0])});
  EXPECT_EQ(predicted_peak_bytes(forward_alone(w.graph)), 2 * 4 * 8 * 8 * 4 + 4 * 4 * 3 * 3 * 4);
}

}  // namespace tandem
