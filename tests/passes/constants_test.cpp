#include "passes/graphs.h"
#include "passes/standard.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace tandem {

TEST(Constants, AChainThatStartsInAFactoryBecomesOneConstant) {
  GraphWriter w;
  Value x = w.input({2});
  Value empty = w.call("aten::empty.memory_format", {ints({2}), number(int64_t(at::kDouble))});
  Value table = empty;
  for (int64_t i = 0; i < 2; ++i) {
    Value element =
        w.call("aten::fill.Scalar",
               {w.call("aten::select.int", {table, number(int64_t(0)), number(i)}), number(3.0 + double(i))});
    table = w.call("aten::select_scatter", {table, element, number(int64_t(0)), number(i)});
  }
  w.graph.set_outputs({w.call("aten::mul.Tensor", {x, table})});
  Graph graph = eliminate_dead_code(fold_constants(w.graph));
  graph.verify();
  ASSERT_EQ(graph.nodes().size(), 1u);
  ASSERT_EQ(graph.constants().size(), 1u);
  EXPECT_TRUE(at::equal(graph.constants()[0].second, at::arange(3, 5, at::kDouble)));
  EXPECT_TRUE(at::equal(graph.run({at::full({2}, 2.0, at::kDouble)})[0], at::arange(6, 10, 2, at::kDouble)));
}

TEST(Constants, ALoneFactoryStays) {
  GraphWriter w;
  Value x = w.input({2});
  Value zeros = w.call("aten::zeros", {ints({2}), number(int64_t(at::kDouble))});
  w.graph.set_outputs({w.call("aten::add.Tensor", {x, zeros})});
  EXPECT_EQ(fold_constants(w.graph).nodes().size(), 2u);
}

TEST(Constants, UnsetMemoryIsNoConstant) {
  GraphWriter w;
  Value x = w.input({2});
  Value unset = w.call("aten::empty_like", {w.constant(at::ones({2}, at::kDouble))});
  w.graph.set_outputs({w.call("aten::copy", {unset, x})});
  Graph graph = fold_constants(w.graph);
  EXPECT_TRUE(has_call(graph, "aten::empty_like"));
  EXPECT_EQ(graph.constants().size(), 1u);
}

TEST(Constants, AnErrorIsLeftToTheRun) {
  GraphWriter w;
  Value x = w.input({2});
  Value empty = w.constant(at::empty({0}, at::kDouble)), rows = w.constant(at::zeros({2}, at::kLong));
  Value wrong = w.call("aten::index_select", {empty, number(int64_t(0)), rows});
  w.graph.set_outputs({w.call("aten::mul.Tensor", {x, wrong})});
  Graph graph = fold_constants(w.graph);
  EXPECT_TRUE(has_call(graph, "aten::index_select"));
  EXPECT_THROW(graph.run({at::ones({2}, at::kDouble)}), c10::Error);
}

TEST(Constants, WhatLeavesTheGraphIsMadeAnewInEveryRun) {
  GraphWriter w;
  Value c = w.constant(at::ones({2}, at::kDouble));
  w.graph.set_outputs({w.call("aten::sin", {w.call("aten::cos", {c})})});
  Graph graph = eliminate_dead_code(fold_constants(w.graph));
  ASSERT_EQ(graph.nodes().size(), 1u);
  at::Tensor first = graph.run({})[0];
  first.zero_();
  EXPECT_TRUE(at::equal(graph.run({})[0], at::ones({2}, at::kDouble).cos().sin()));
}

TEST(Constants, RandomAndLargeNodesStay) {
  GraphWriter w;
  Value c = w.constant(at::ones({2}, at::kDouble)), x = w.input({2});
  Value drawn = w.call("aten::rand_like", {c});
  Value large =
      w.call("aten::expand",
             {w.call("aten::unsqueeze", {w.call("aten::sin", {c}), number(int64_t(0))}), ints({8192, 2})});
  Value sum = w.call("aten::sum.dim_IntList", {w.call("aten::mul.Tensor", {large, x}), ints({0})});
  w.graph.set_outputs({w.call("aten::add.Tensor", {sum, drawn})});
  Graph graph = fold_constants(w.graph);
  EXPECT_TRUE(has_call(graph, "aten::rand_like"));
  EXPECT_TRUE(has_call(graph, "aten::expand"));
  EXPECT_FALSE(has_call(graph, "aten::sin"));
}

TEST(Constants, AWrittenCloneIsNotShared) {
  GraphWriter w;
  Value c = w.constant(at::ones({2}, at::kDouble)), x = w.input({2});
  Value copy = w.call("aten::clone", {c});
  Value after = w.graph.add_value(w.graph.meta(copy));
  w.graph.add_node(
      Node{find_op("aten::add_.Tensor"), {copy, x, number(int64_t(1))}, {after}, {{copy, after}}});
  w.graph.set_outputs({w.call("aten::sin", {after})});
  Graph graph = fold_constants(w.graph);
  for (int run = 0; run < 2; ++run)
    EXPECT_TRUE(at::equal(graph.run({at::ones({2}, at::kDouble)})[0], at::full({2}, 2.0, at::kDouble).sin()));
}

TEST(Identities, ReadersReadTheSource) {
  GraphWriter w;
  Value x = w.input({2});
  Value y = w.call("aten::sin", {w.call("aten::alias", {w.call("aten::detach", {x})})});
  w.graph.set_outputs({y});
  Graph graph = remove_identities(w.graph);
  graph.verify();
  ASSERT_EQ(graph.nodes().size(), 1u);
  EXPECT_EQ(std::get<Value>(graph.nodes()[0].arguments[0]), x);
}

TEST(Identities, AnOutputStaysATensorOfItsOwn) {
  GraphWriter w;
  Value x = w.input({2});
  Value d = w.call("aten::detach", {x});
  w.graph.set_outputs({d, w.call("aten::sin", {d})});
  Graph graph = remove_identities(w.graph);
  ASSERT_EQ(graph.nodes().size(), 2u);
  EXPECT_EQ(graph.outputs()[0], d);
  EXPECT_EQ(std::get<Value>(graph.nodes()[1].arguments[0]), x);
}

}  // namespace tandem
