// The partitioner min_cut: what is kept at which budget, and that forward and backward give what the joint
// gives at every one.
#include "partition/halves.h"

#include <algorithm>

namespace tandem {
namespace {

bool fuses_all(const Graph&, const Node&) { return true; }

/// x -> f(f(... x)), each step with a derivative that reads what the step was given.
Joint chain_of(const char* op, size_t length, int64_t size = 8) {
  GraphWriter w;
  const Value x = w.input({size}), tangent = w.input({size});
  std::vector<Value> given;
  Value last = x;
  for (size_t i = 0; i < length; ++i) {
    given.push_back(last);
    last = w.call(op, {last});
  }
  w.phase = Phase::Backward;
  Value gradient = tangent;
  for (size_t i = length; i > 0; --i)
    gradient = w.call("aten::mul.Tensor", {gradient, w.call("aten::exp", {given[i - 1]})});
  w.graph.set_outputs({last, gradient});
  return {w.graph, 1, 1};
}

std::vector<std::string> names_of_saved(const Partition& halves) {
  std::vector<std::string> names;
  for (Value v : halves.saved) names.push_back(halves.forward.name(v));
  std::sort(names.begin(), names.end());
  return names;
}

int64_t bytes_of_saved(const Joint& joint, const Partition& halves) {
  int64_t bytes = 0;
  for (Value v : halves.saved)
    if (v != joint.graph.inputs()[0]) bytes += halves.forward.meta(v).storage_bytes();
  return bytes;
}

size_t calls_of(const Graph& graph, const std::string& name) {
  return size_t(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                              [&](const Node& n) { return n.op.operator_name().name == name; }));
}

}  // namespace

TEST(MinCut, RunsNothingAgainAtTheWholeBudgetThatTakesTime) {
  const Joint joint = chain_of("aten::cos", 3);
  const Partition halves = partition_min_cut(joint);
  EXPECT_EQ(halves.saved.size(), 3u);
  EXPECT_FALSE(has_call(halves.backward, "aten::cos"));
}

TEST(MinCut, F6_KeepsTheInputAloneWhereEverythingIsFused) {
  const Joint joint = chain_of("aten::cos", 3);
  const Partition halves = partition_min_cut(joint, {.fuses = fuses_all});
  EXPECT_EQ(halves.saved, std::vector<Value>{joint.graph.inputs()[0]});
  EXPECT_EQ(halves.forward.outputs().size(), 2u);
  EXPECT_EQ(calls_of(halves.backward, "aten::cos"), 2u);
}

TEST(MinCut, F6_KeepsOneSumInPlaceOfFourTerms) {
  GraphWriter w;
  Value sum;
  std::vector<Value> terms;
  for (int i = 0; i < 4; ++i) terms.push_back(w.input({8}));
  const Value tangent = w.input({8});
  for (Value term : terms) sum = sum ? w.call("aten::add.Tensor", {sum, term}) : term;
  const Value inner = w.call("aten::cos", {sum}), out = w.call("aten::cos", {inner});
  w.phase = Phase::Backward;
  const Value gradient = w.call("aten::mul.Tensor", {w.call("aten::mul.Tensor", {tangent, inner}), sum});
  w.graph.set_outputs({out, gradient});
  const Partition halves = partition_min_cut({w.graph, 4, 1}, {.fuses = fuses_all});
  EXPECT_EQ(halves.saved, std::vector<Value>{sum});
}

TEST(MinCut, F7_RunsAProductAgainWhereThatIsFused) {
  GraphWriter w;
  const Value x = w.input({8}), tangent = w.input({8});
  const Value square = w.call("aten::mul.Tensor", {x, x}), cube = w.call("aten::mul.Tensor", {square, x});
  w.phase = Phase::Backward;
  const Value gradient = w.call("aten::mul.Tensor", {w.call("aten::mul.Tensor", {tangent, square}), x});
  w.graph.set_outputs({cube, gradient});
  const Joint joint{w.graph, 1, 1};
  EXPECT_EQ(partition_min_cut(joint).saved, (std::vector<Value>{x, square}));
  EXPECT_EQ(partition_min_cut(joint, {.fuses = fuses_all}).saved, std::vector<Value>{x});
}

TEST(MinCut, ASmallerBudgetKeepsNoMoreThanALargerOneAndGivesTheSame) {
  const Joint joint = chain_of("aten::cos", 24, 1024);
  int64_t kept = std::numeric_limits<int64_t>::max(), peak = kept;
  for (int tenths = 10; tenths >= 0; --tenths) {
    const Partition halves = partition_min_cut(joint, {.memory_budget = tenths / 10.0});
    expect_joint(joint, halves);
    EXPECT_LE(bytes_of_saved(joint, halves), kept) << tenths;
    EXPECT_LE(predicted_peak_bytes(halves), peak) << tenths;
    kept = bytes_of_saved(joint, halves);
    peak = predicted_peak_bytes(halves);
  }
  EXPECT_LT(peak, predicted_peak_bytes(partition_min_cut(joint)) * 7 / 10);
}

TEST(MinCut, KeepsNoMoreBytesThanAreAllowed) {
  const Joint joint = chain_of("aten::cos", 24, 1024);
  const int64_t all = bytes_of_saved(joint, partition_min_cut(joint));
  for (int64_t part : {1, 2, 4, 8}) {
    const Partition halves = partition_min_cut(joint, {.memory_budget_bytes = all / part});
    EXPECT_LE(bytes_of_saved(joint, halves), all / part);
    expect_joint(joint, halves);
  }
}

TEST(MinCut, DrawsAgainFromTheStateWhereThatIsSmallerThanWhatWasDrawn) {
  const Joint large = dropped_sine(100000), small = dropped_sine(8);
  const Partition again = partition_min_cut(large, {.memory_budget_bytes = 1000000});
  EXPECT_TRUE(has_call(again.backward, "aten::native_dropout"));
  expect_joint(large, again);
  const Partition kept = partition_min_cut(small, {.memory_budget_bytes = 64});
  EXPECT_FALSE(has_call(kept.backward, "aten::native_dropout"));
  expect_joint(small, kept);
}

TEST(MinCut, F14_KeepsWhatMustBeKeptAtEveryBudget) {
  const Joint joint = chain_of("aten::cos", 8, 1024);
  const Value third = std::get<Value>(joint.graph.nodes()[2].results[0]);
  const PartitionContext context{.memory_budget = 0, .must_save = {third}};
  const Partition halves = partition_min_cut(joint, context);
  verify(halves, joint, context, "min_cut");
  const std::vector<std::string> saved = names_of_saved(halves);
  EXPECT_TRUE(std::count(saved.begin(), saved.end(), joint.graph.name(third)));
}

TEST(MinCut, GivesUpFirstWhatTheCostModelSaysIsCheap) {
  GraphWriter w;
  const Value x = w.input({1024}), tangent = w.input({1024});
  const Value sine = w.call("aten::sin", {x}), cosine = w.call("aten::cos", {x});
  const Value out = w.call("aten::mul.Tensor", {sine, cosine});
  w.phase = Phase::Backward;
  const Value gradient = w.call("aten::mul.Tensor", {w.call("aten::mul.Tensor", {tangent, sine}), cosine});
  w.graph.set_outputs({out, w.call("aten::mul.Tensor", {gradient, x})});
  const Joint joint{w.graph, 1, 1};
  auto dear = [](const std::string& name) {
    return CostModel(
        [name](const Graph&, const Node& node) { return node.op.operator_name().name == name ? 1.0 : 1e-6; });
  };
  const int64_t room = 1024 * 8;
  for (const std::string name : {"aten::sin", "aten::cos"}) {
    const Partition halves =
        partition_min_cut(joint, {.memory_budget_bytes = room, .cost_model = dear(name)});
    EXPECT_FALSE(has_call(halves.backward, name)) << name;
    EXPECT_EQ(calls_of(halves.backward, "aten::sin") + calls_of(halves.backward, "aten::cos"), 1u);
  }
}

TEST(PredictedPeak, CountsWhatIsAliveAtOnce) {
  // The sine and the output, then tangent times sine beside both: the tangent is the caller's.
  GraphWriter w;
  const Value x = w.input({8}), tangent = w.input({8});
  const Value sine = w.call("aten::sin", {x}), out = w.call("aten::exp", {sine});
  w.phase = Phase::Backward;
  w.graph.set_outputs({out, w.call("aten::mul.Tensor", {tangent, sine})});
  EXPECT_EQ(predicted_peak_bytes(partition_default({w.graph, 1, 1})), 3 * 8 * 8);
}

}  // namespace tandem
