#include "passes/graphs.h"

#include <tandem/passes.h>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <random>

namespace tandem {
namespace {

/// How many nodes the pass removes; it must be idempotent and keep what the graph computes.
size_t removed(const GraphWriter& w) {
  Graph once = eliminate_common_subexpressions(w.graph), twice = eliminate_common_subexpressions(once);
  EXPECT_EQ(once.nodes().size(), twice.nodes().size());
  once.verify();
  at::Tensor x = at::rand({4, 4}, at::kDouble);
  Tensors before = Graph(w.graph).run({x}), after = once.run({x});
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(before[i], after[i]));
  return w.graph.nodes().size() - once.nodes().size();
}

Value sum_of(GraphWriter& w, const std::vector<Value>& values) {
  Value total = values[0];
  for (size_t i = 1; i < values.size(); ++i) total = w.call("aten::add.Tensor", {total, values[i]});
  w.graph.set_outputs({total});
  return total;
}

Value row_sum(GraphWriter& w, Value x, bool keepdim = false) {
  return w.call("aten::sum.dim_IntList", {x, ints({1}), c10::IValue(keepdim)});
}

}  // namespace

TEST(CommonSubexpressions, F24PairedSums) {
  GraphWriter w;
  Value x = w.input({4, 4});
  sum_of(w, {row_sum(w, x), row_sum(w, x), w.call("aten::sum", {x}), w.call("aten::sum", {x})});
  EXPECT_EQ(removed(w), 2u);
}

TEST(CommonSubexpressions, F24ListDims) {
  GraphWriter w;
  Value x = w.input({4, 4});
  auto both = [&] { return w.call("aten::sum.dim_IntList", {x, ints({0, 1})}); };
  sum_of(w, {row_sum(w, x), row_sum(w, x), both(), both()});
  EXPECT_EQ(removed(w), 2u);
}

TEST(CommonSubexpressions, F24CosTwiceAndItsSums) {
  GraphWriter w;
  Value x = w.input({4, 4});
  Value a = w.call("aten::cos", {x}), b = w.call("aten::cos", {x});
  Value c = w.call("aten::add.Tensor", {a, a}), d = w.call("aten::add.Tensor", {b, b});
  sum_of(w, {c, d});
  EXPECT_EQ(removed(w), 2u);
}

TEST(CommonSubexpressions, F24ChainsMergeFromTheFront) {
  GraphWriter w;
  Value x = w.input({4, 4});
  Value a = w.call("aten::sin", {w.call("aten::cos", {x})}),
        b = w.call("aten::sin", {w.call("aten::cos", {x})});
  Value c = w.call("aten::add.Tensor", {a, a}), d = w.call("aten::add.Tensor", {b, b});
  sum_of(w, {c, d});
  EXPECT_EQ(removed(w), 3u);
}

TEST(CommonSubexpressions, F24AnExplicitDefaultIsTheDefault) {
  GraphWriter w;
  Value x = w.input({4, 4});
  Value implicit = w.call("aten::sum.dim_IntList", {x, ints({1})});
  sum_of(w, {implicit, row_sum(w, x, false), w.call("aten::sum", {x}), w.call("aten::sum", {x}),
             row_sum(w, x, false)});
  EXPECT_EQ(removed(w), 3u);
}

TEST(CommonSubexpressions, F24AnotherKeepdimIsAnotherNode) {
  GraphWriter w;
  Value x = w.input({4, 4});
  sum_of(w, {row_sum(w, x), row_sum(w, x), row_sum(w, x, true), row_sum(w, x, true)});
  EXPECT_EQ(removed(w), 2u);
}

TEST(CommonSubexpressions, F24FourEqualSums) {
  GraphWriter w;
  Value x = w.input({4, 4});
  sum_of(w, {row_sum(w, x), row_sum(w, x), row_sum(w, x), row_sum(w, x)});
  EXPECT_EQ(removed(w), 3u);
}

TEST(CommonSubexpressions, F24CatOfEqualLists) {
  GraphWriter w;
  Value x = w.input({4, 4});
  auto cat = [&] { return w.call("aten::cat", {std::vector<Value>{x, x}, number(int64_t(0))}); };
  sum_of(w, {cat(), cat()});
  EXPECT_EQ(removed(w), 1u);
}

TEST(CommonSubexpressions, F24EqualKeywordArguments) {
  GraphWriter w;
  Value x = w.input({4, 4});
  auto ones = [&] { return w.call("aten::ones_like", {x, number(int64_t(at::kDouble))}); };
  sum_of(w, {ones(), ones(), x});
  EXPECT_EQ(removed(w), 1u);
}

TEST(CommonSubexpressions, F25LeavesDifferentChainsAlone) {
  GraphWriter w;
  Value x = w.input({4, 4});
  Value one = w.call("aten::add.Scalar", {x, number(int64_t(1))}), twice = w.call("aten::add.Tensor", {x, x});
  sum_of(w, {w.call("aten::cos", {one}), w.call("aten::cos", {twice})});
  EXPECT_EQ(removed(w), 0u);
  EXPECT_TRUE(eliminate_common_subexpressions(Graph()).empty());
}

TEST(CommonSubexpressions, F25RandomNodesDrawAnew) {
  GraphWriter w;
  Value x = w.input({4, 4});
  auto randn = [&] { return w.call("aten::randn", {ints({4, 4}), number(int64_t(at::kDouble))}); };
  sum_of(w, {w.call("aten::rand_like", {x}), w.call("aten::rand_like", {x}), randn(), randn()});
  EXPECT_EQ(eliminate_common_subexpressions(w.graph).nodes().size(), w.graph.nodes().size());
}

TEST(CommonSubexpressions, F25AnIntegerIsNoFloat) {
  GraphWriter w;
  Value x = w.input({4, 4});
  sum_of(w,
         {w.call("aten::add.Scalar", {x, number(int64_t(1))}), w.call("aten::add.Scalar", {x, number(1.0)})});
  EXPECT_EQ(removed(w), 0u);
}

TEST(CommonSubexpressions, F27RandomChains) {
  std::mt19937 random(7);
  const char* ops[] = {"aten::sin", "aten::cos", "aten::tanh", "aten::neg"};
  for (int repeat = 0; repeat < 30; ++repeat) {
    GraphWriter w;
    std::vector<Value> values{w.input({4, 4})};
    for (int i = 0; i < 100; ++i) {
      Value a = values[random() % values.size()], b = values[random() % values.size()];
      unsigned choice = random() % 5;
      values.push_back(choice < 4 ? w.call(ops[choice], {a}) : w.call("aten::mul.Tensor", {a, b}));
    }
    sum_of(w, values);
    EXPECT_GT(removed(w), 0u);
  }
}

TEST(CommonSubexpressions, OutputsStayApart) {
  GraphWriter w;
  Value x = w.input({4, 4});
  Value a = w.call("aten::cos", {x}), b = w.call("aten::cos", {x});
  w.graph.set_outputs({w.call("aten::view", {a, ints({16})}), w.call("aten::view", {b, ints({16})})});
  EXPECT_EQ(removed(w), 0u);
  Tensors out = eliminate_common_subexpressions(w.graph).run({at::rand({4, 4}, at::kDouble)});
  EXPECT_FALSE(out[0].is_alias_of(out[1]));
}

TEST(CommonSubexpressions, AViewOfAMergedValueNamesTheMemoryThatIsLeft) {
  GraphWriter w;
  Value x = w.input({4, 4});
  auto cosine = [&] { return w.call("aten::cos", {x}); };
  Value a = cosine(), b = cosine(), c = cosine();
  Value row = w.call("aten::t", {b}), again = w.call("aten::t", {a}),
        flat = w.call("aten::unsqueeze", {w.call("aten::t", {c}), number(int64_t(0))});
  sum_of(w, {a, row, again, flat});
  EXPECT_EQ(removed(w), 4u);
  Graph merged = eliminate_common_subexpressions(w.graph);
  EXPECT_EQ(merged.meta(row).storage, merged.meta(a).storage);
  EXPECT_EQ(merged.meta(flat).storage, merged.meta(a).storage);
}

TEST(CommonSubexpressions, PhasesStayApart) {
  GraphWriter w;
  Value x = w.input({4, 4});
  Value a = w.call("aten::cos", {x});
  w.phase = Phase::Backward;
  sum_of(w, {a, w.call("aten::cos", {x})});
  EXPECT_EQ(removed(w), 0u);
}

}  // namespace tandem
