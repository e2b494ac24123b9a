#include "passes/standard.h"
#include "passes/graphs.h"

#include <tandem/error.h>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace tandem {

TEST(StandardPasses, RegisteredPassesRunFirstAndAtTheirStageOnly) {
  static int runs = 0;
  register_pass(Stage::Inference, Pass([](Graph graph) { return ++runs, graph; }, "counting", "1"));
  GraphWriter w;
  w.graph.set_outputs({w.call("aten::sin", {w.input({2})})});
  run_standard_passes(w.graph, {}, Stage::Joint);
  EXPECT_EQ(runs, 0);
  run_standard_passes(w.graph, {}, Stage::Inference);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(registered_passes(Stage::Inference).back().name, "counting");
}

TEST(StandardPasses, APassMayNotChangeTheEdges) {
  static bool active = true;
  register_pass(Stage::Backward, Pass([](Graph graph) {
                  if (active) graph.set_outputs({});
                  return graph;
                }));
  GraphWriter w;
  w.graph.set_outputs({w.call("aten::sin", {w.input({2})})});
  EXPECT_THROW(run_standard_passes(w.graph, {}, Stage::Backward), Error);
  active = false;
}

TEST(StandardPasses, AllOfThemKeepTheResult) {
  GraphWriter w;
  Value x = w.input({3});
  Value c = w.call("aten::sin", {w.constant(at::ones({3}, at::kDouble))});
  Value a = w.call("aten::hardswish", {w.call("aten::detach", {x})}), b = w.call("aten::hardswish", {x});
  w.call("aten::cos", {b});
  w.graph.set_outputs({w.call("aten::mul.Tensor", {w.call("aten::add.Tensor", {a, b}), c})});
  Graph graph = run_standard_passes(w.graph, default_decompositions(), Stage::Joint);
  graph.verify();
  EXPECT_FALSE(has_call(graph, "aten::detach"));
  EXPECT_FALSE(has_call(graph, "aten::hardswish"));
  EXPECT_FALSE(has_call(graph, "aten::sin"));
  EXPECT_FALSE(has_call(graph, "aten::cos"));
  at::Tensor in = at::randn({3}, at::kDouble);
  EXPECT_TRUE(at::allclose(graph.run({in})[0], w.graph.run({in})[0], 1e-12, 1e-12));
}

}  // namespace tandem
