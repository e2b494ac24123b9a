#include <gtest/gtest.h>
#include <tandem/tandem.h>

#include "backends/direct_writes.h"
#include "shapes/shapes.h"

namespace tandem {
namespace {

size_t calls_of(const Graph& graph, const std::string& name) {
  return size_t(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                              [&](const Node& node) { return node.op.schema().name() == name; }));
}

Graph forward_of(const Callable& function, const Tensors& inputs) {
  at::NoGradGuard no_grad;
  return Compiled(function, {.backend = "eager"}).explain(inputs).forward;
}

at::Tensor normalise(const Tensors& in) {
  return std::get<0>(at::native_batch_norm(in[0], {}, {}, in[1], in[2], true, 0.1, 1e-5));
}

TEST(DirectWrites, RunningStatisticsAreWrittenInPlace) {
  Tensors inputs = {at::randn({4, 3}), at::zeros({3}), at::ones({3})};
  Graph graph = forward_of([](const Tensors& in) { return Tensors{normalise(in)}; }, inputs);
  EXPECT_EQ(calls_of(graph, "aten::clone"), 2u);
  Graph direct = write_inputs_directly(graph);
  EXPECT_EQ(calls_of(direct, "aten::clone"), 0u);
  EXPECT_EQ(calls_of(direct, "aten::copy_"), 0u);

  Tensors plain = {inputs[0], inputs[1].clone(), inputs[2].clone()};
  at::Tensor wanted = normalise(plain);
  EXPECT_TRUE(at::equal(direct.run(Tensors(inputs))[0], wanted));
  EXPECT_TRUE(at::equal(inputs[1], plain[1]));
  EXPECT_TRUE(at::equal(inputs[2], plain[2]));
}

TEST(DirectWrites, OldContentsThatAreReadLaterKeepTheCopy) {
  Graph graph;
  TensorMeta meta{.sizes = {3}, .strides = {1}, .storage = 0};
  Value x = graph.add_input(meta);
  Value clone = std::get<Value>(append_call(graph, find_op("aten::clone"), {x}, Phase::Forward).results[0]);
  Value written = graph.add_value(graph.meta(clone)), last = graph.add_value(meta);
  graph.add_node({.op = find_op("aten::add_.Scalar"),
                  .arguments = {clone, c10::IValue(1), c10::IValue(1)},
                  .results = {Value{}},
                  .writes = {{clone, written}}});
  Value square =
      std::get<Value>(append_call(graph, find_op("aten::mul.Tensor"), {x, x}, Phase::Forward).results[0]);
  graph.add_node({.op = find_op("aten::copy_"),
                  .arguments = {x, written, c10::IValue(false)},
                  .results = {Value{}},
                  .writes = {{x, last}}});
  graph.set_outputs({square});
  graph.verify();

  at::Tensor input = at::randn({3}), old = input.clone();
  EXPECT_TRUE(at::equal(write_inputs_directly(graph).run({input})[0], old * old));
  EXPECT_TRUE(at::equal(input, old + 1));
}

}  // namespace
}  // namespace tandem
