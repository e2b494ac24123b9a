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
  run_standard_passes(w.graph, {}, registered_passes(Stage::Joint));
  EXPECT_EQ(runs, 0);
  run_standard_passes(w.graph, {}, registered_passes(Stage::Inference));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(registered_passes(Stage::Inference).back().name, "counting");
}

std::string refusal_of(const Pass& pass) {
  GraphWriter w;
  w.graph.set_outputs({w.call("aten::sin", {w.input({2})})});
  try {
    run_passes(w.graph, {pass});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(StandardPasses, APassThatBreaksAGraphIsNamed) {
  EXPECT_EQ(
      refusal_of({[](Graph graph) {
                    graph.set_outputs({});
                    return graph;
                  },
                  "cutting", "1"}),
      "the pass 'cutting' broke a graph: it changed the number of inputs or outputs; a pass must keep both");
  const std::string refusal = refusal_of({[](Graph graph) {
                                            graph.nodes().clear();
                                            return graph;
                                          },
                                          "emptying", "1"});
  EXPECT_EQ(refusal.find("the pass 'emptying' broke a graph: "), 0u) << refusal;
  EXPECT_EQ(refusal_of({[](Graph graph) { return graph; }, "careful", "1"}), "");
}

TEST(StandardPasses, AllOfThemKeepTheResult) {
  GraphWriter w;
  Value x = w.input({3});
  Value c = w.call("aten::sin", {w.constant(at::ones({3}, at::kDouble))});
  Value a = w.call("aten::hardswish", {w.call("aten::detach", {x})}), b = w.call("aten::hardswish", {x});
  w.call("aten::cos", {b});
  w.graph.set_outputs({w.call("aten::mul.Tensor", {w.call("aten::add.Tensor", {a, b}), c})});
  Graph graph = run_standard_passes(w.graph, default_decompositions(), registered_passes(Stage::Joint));
  graph.verify();
  EXPECT_FALSE(has_call(graph, "aten::detach"));
  EXPECT_FALSE(has_call(graph, "aten::hardswish"));
  EXPECT_FALSE(has_call(graph, "aten::sin"));
  EXPECT_FALSE(has_call(graph, "aten::cos"));
  at::Tensor in = at::randn({3}, at::kDouble);
  EXPECT_TRUE(at::allclose(graph.run({in})[0], w.graph.run({in})[0], 1e-12, 1e-12));
}

}  // namespace tandem
