// Which matrix products `fuse` runs at once, and that their results are eager's.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <tandem/tandem.h>
#include <torch/torch.h>

#include "backends/fused_graph.h"
#include "backends/interpreter.h"
#include "fuzz/tolerance.h"

namespace tandem {
namespace {

Options without_cache() {
  Options options;
  options.backend = "fuse";
  options.cache.enabled = options.watched_calls = false;
  return options;
}

/// How many products run at once, by the calls that stand for several.
std::vector<size_t> products_of(const Callable& function, const Tensors& inputs, int64_t threads) {
  const at::NoGradGuard no_grad;
  const FusedGraph fused = fuse(Compiled(function, without_cache()).explain(inputs).forward, threads);
  fused.graph.verify();
  std::vector<size_t> counts;
  for (const SideBySide& products : fused.side_by_side) counts.push_back(products.size());
  return counts;
}

using Counts = std::vector<size_t>;

Tensors two(const Tensors& in) { return {at::mm(in[0], in[1]), at::mm(in[1], in[0])}; }
Tensors square(int64_t size) { return {at::randn({size, size}), at::randn({size, size})}; }

TEST(SideBySide, SmallProductsRunAtOnce) { EXPECT_EQ(products_of(two, square(64), 2), Counts{2}); }

TEST(SideBySide, OneThreadRunsOneAfterTheOther) { EXPECT_EQ(products_of(two, square(64), 1), Counts{}); }

TEST(SideBySide, LargeProductsHaveAllThreads) { EXPECT_EQ(products_of(two, square(2000), 2), Counts{}); }

TEST(SideBySide, AShortProductIsNotWorthAThreadBesideALongOne) {
  EXPECT_EQ(products_of([](const Tensors& in) { return Tensors{at::mm(in[0], in[0]), at::mm(in[1], in[1])}; },
                        {at::randn({300, 300}), at::randn({8, 8})}, 2),
            Counts{});
}

TEST(SideBySide, WhatWaitsForAnotherRunsBehindIt) {
  EXPECT_EQ(products_of(
                [](const Tensors& in) {
                  const at::Tensor first = at::mm(in[0], in[1]);
                  return Tensors{at::mm(at::tanh(first), in[1]), first};
                },
                square(64), 2),
            Counts{});
}

TEST(SideBySide, WhatWaitsForNothingMovesUp) {
  EXPECT_EQ(products_of(
                [](const Tensors& in) {
                  const at::Tensor first = at::tanh(at::mm(in[0], in[1]));
                  return Tensors{first.sum(), at::mm(in[1], in[0])};
                },
                square(64), 2),
            Counts{2});
}

TEST(SideBySide, AWriteInBetweenIsWaitedFor) {
  EXPECT_EQ(products_of(
                [](const Tensors& in) {
                  const at::Tensor first = at::mm(in[0], in[0]);
                  in[1].copy_(first);
                  return Tensors{at::mm(in[1], in[1])};
                },
                square(64), 2),
            Counts{});
}

TEST(SideBySide, AsManyAsThereAreThreads) {
  const Callable five = [](const Tensors& in) {
    Tensors results;
    for (int k = 0; k < 5; ++k) results.push_back(at::mm(in[0] * k, in[1]));
    return results;
  };
  EXPECT_EQ(products_of(five, square(64), 2), (Counts{2, 2}));
  EXPECT_EQ(products_of(five, square(64), 4), Counts{4});
}

/// Threads of libtorch's, as many as asked for.
class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }

 private:
  const int before_;
};

TEST(SideBySide, ResultsAndGradientsAreEagers) {
  const Threads threads(2);
  const Callable layers = [](const Tensors& in) {
    at::Tensor x = in[0];
    for (int k = 0; k < 3; ++k) x = at::tanh(at::addmm(in[1], x, in[2].t()));
    return Tensors{at::bmm(x.view({4, 8, 32}), x.view({4, 32, 8})).sum() + at::mm(x, x.t()).mean()};
  };
  auto gradients_of = [&](auto&& function) {
    torch::manual_seed(5);
    Tensors inputs = {at::randn({32, 32}), at::randn({32}), at::randn({32, 32})};
    for (at::Tensor& input : inputs) input.requires_grad_();
    return torch::autograd::grad({function(inputs)[0]}, inputs);
  };
  const auto want = gradients_of(layers), got = gradients_of(Compiled(layers, without_cache()));
  for (size_t k = 0; k < want.size(); ++k)
    EXPECT_TRUE(fuzz::is_near(want[k], got[k])) << got[k] << "\ninstead of\n" << want[k];
}

TEST(SideBySide, AFailureOnAThreadIsTheCallers) {
  const Threads threads(2);
  std::vector<SideBySide> found;
  Graph graph;
  const TensorMeta meta{.sizes = {64, 64}, .strides = {64, 1}};
  auto described = [&](int32_t storage) {
    TensorMeta own = meta;
    own.storage = storage;
    return own;
  };
  const Value a = graph.add_input(described(0)), b = graph.add_input(described(1));
  std::vector<Value> outputs;
  for (int32_t k = 0; k < 2; ++k) {
    Node node{c10::Dispatcher::singleton().findSchemaOrThrow("aten::mm", "")};
    node.arguments = {a, b};
    outputs.push_back(graph.add_value(described(2 + k)));
    node.results = {outputs.back()};
    graph.add_node(std::move(node));
  }
  graph.set_outputs(outputs);
  const Graph together = put_side_by_side(graph, 2, found);
  ASSERT_EQ(found.size(), 1u);
  const Interpreter interpreter(together, Lifetime::LastUse,
                                [&](const CallSite& site) { return make_side_by_side_call(site, found[0]); });
  EXPECT_EQ(interpreter.run({at::ones({64, 64}), at::ones({64, 64})}).size(), 2u);
  EXPECT_THROW(interpreter.run({at::ones({64, 64}), at::ones({63, 64})}), c10::Error);
}

}  // namespace
}  // namespace tandem
