#include <gtest/gtest.h>
#include <tandem/tandem.h>

#include "backends/direct_writes.h"

namespace tandem {
namespace {

size_t calls_of(const Graph& graph, const std::string& name) {
  return size_t(std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) { return node.op.schema().name() == name; }));
}

Graph forward_of(const Callable& function, const Tensors& inputs) {
  at::NoGradGuard no_grad;
  return Compiled(function, {.backend = "eager"}).explain(inputs).forward;
}

at::Tensor normalise(const Tensors& in) { return std::get<0>(at::native_batch_norm(in[0], {}, {}, in[1], in[2], true, 0.1, 1e-5)); }

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
  auto function = [](const Tensors& in) {
    at::Tensor old = in[1].view({3, 1});
    at::Tensor normal = normalise({in[0], in[1].detach().clone(), in[2]});
    return Tensors{normal, old * 2};
  };
  Tensors inputs = {at::randn({4, 3}), at::zeros({3}), at::ones({3})};
  Graph graph = forward_of([&](const Tensors& in) { return Tensors{normalise(in) + normalise(in)}; }, inputs);
  Tensors plain = {inputs[0], inputs[1].clone(), inputs[2].clone()};
  at::Tensor wanted = normalise(plain) + normalise(plain);
  EXPECT_TRUE(at::equal(write_inputs_directly(graph).run(Tensors(inputs))[0], wanted));
  EXPECT_TRUE(at::equal(inputs[1], plain[1]));

  Tensors others = {at::randn({4, 3}), at::randn({3}), at::ones({3})};
  Tensors expected = function(Tensors{others[0], others[1].clone(), others[2].clone()});
  Tensors got = write_inputs_directly(forward_of(function, others)).run(Tensors(others));
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::equal(got[i], expected[i]));
}

}  // namespace
}  // namespace tandem
