#include "passes/graphs.h"

#include <tandem/passes.h>

#include <gtest/gtest.h>

namespace tandem {

TEST(DeadCode, DropsChainsThatNothingReads) {
  GraphWriter w;
  Value x = w.input({3});
  Value dead = w.call("aten::sin", {x});
  w.call("aten::cos", {dead});
  Value live = w.call("aten::tanh", {x});
  w.graph.set_outputs({live});
  Graph graph = eliminate_dead_code(w.graph);
  ASSERT_EQ(graph.nodes().size(), 1u);
  EXPECT_TRUE(has_call(graph, "aten::tanh"));
}

TEST(DeadCode, KeepsWritesToInputs) {
  GraphWriter w;
  Value x = w.input({3});
  Value doubled = w.call("aten::mul.Scalar", {x, number(2.0)});
  Value after = w.graph.add_value(w.graph.meta(x));
  w.graph.add_node(Node{find_op("aten::copy_"), {x, doubled, c10::IValue(false)}, {after}, {{x, after}}});
  w.graph.set_outputs({});
  EXPECT_EQ(eliminate_dead_code(w.graph).nodes().size(), 2u);
}

TEST(DeadCode, DropsWritesToClonesThatNothingReads) {
  GraphWriter w;
  Value x = w.input({3});
  Value copy = w.call("aten::clone", {x});
  Value after = w.graph.add_value(w.graph.meta(copy));
  w.graph.add_node(Node{find_op("aten::copy_"), {copy, x, c10::IValue(false)}, {after}, {{copy, after}}});
  w.graph.set_outputs({x});
  EXPECT_EQ(eliminate_dead_code(w.graph).nodes().size(), 0u);
}

TEST(DeadCode, KeepsRandomNodesSoThatLaterNumbersStayTheSame) {
  GraphWriter w;
  Value x = w.input({3});
  w.call("aten::rand_like", {x});
  Value drawn = w.call("aten::rand_like", {x});
  w.graph.set_outputs({drawn});
  EXPECT_EQ(eliminate_dead_code(w.graph).nodes().size(), 2u);
}

TEST(DeadCode, DropsConstantsThatNothingReads) {
  GraphWriter w;
  Value used = w.constant(at::ones({2}, at::kDouble));
  Value unused = w.constant(at::ones({2}, at::kDouble));
  w.call("aten::sin", {unused});
  w.graph.set_outputs({w.call("aten::sin", {used})});
  Graph graph = eliminate_dead_code(w.graph);
  ASSERT_EQ(graph.constants().size(), 1u);
  EXPECT_EQ(graph.constants()[0].first, used);
}

}  // namespace tandem
