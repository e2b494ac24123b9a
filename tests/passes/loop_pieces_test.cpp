#include "passes/loop_calls.h"

#include <cmath>

namespace tandem {
namespace {

/// Both sides of every kink, the kinks themselves, what is no number and what is far.
at::Tensor pieces() {
  return at::cat({at::linspace(-4, 4, 33, at::kDouble),
                  at::tensor({-INFINITY, -200., -0., 200., double(INFINITY), double(NAN)})});
}
at::Tensor probabilities() { return at::tensor({0., 1e-6, 0.1, 0.5, 0.7, 1 - 1e-6, 1., -0.5, 1.5}); }

}  // namespace

TEST(LoopTable, PiecewiseFunctionsAreEagers) {
  for (const at::Tensor& x : {pieces(), normal({3, 4}).t(), normal({})}) {
    expect_as_eager({"aten::threshold", {x, number(0.5), number(-2.)}});
    expect_as_eager({"aten::frac", {x}});
    expect_as_eager({"aten::sgn", {x}});
    for (double alpha : {0.5, 1., 2.}) expect_as_eager({"aten::celu", {x, number(alpha)}});
    for (double bound : {0., 0.5}) {
      expect_as_eager({"aten::hardshrink", {x, number(bound)}});
      expect_as_eager({"aten::softshrink", {x, number(bound)}});
      for (const char* op : {"aten::hardshrink_backward", "aten::softshrink_backward"})
        expect_as_eager({op, {normal(x.sizes(), 2), x, number(bound)}});
    }
  }
}

TEST(LoopTable, PreluIsEagers) {
  at::Tensor x = normal({2, 3, 4}), weight = normal({3, 1}, 2), g = normal({2, 3, 4}, 3);
  x[0][0][0] = 0, x[0][0][1] = NAN;
  expect_as_eager({"aten::_prelu_kernel", {x, weight}});
  expect_as_eager({"aten::_prelu_kernel_backward", {g, x, weight}});
  expect_as_eager({"aten::_prelu_kernel", {x, normal({1})}});
}

TEST(LoopTable, GatedLinearUnitsAreEagers) {
  for (const at::Tensor& x : laid_out({4, 6, 8}))
    for (int64_t dim : {0, 1, -1}) expect_as_eager({"aten::glu", {x, number(dim)}});
}

TEST(LoopTable, DropoutBackwardsAreEagers) {
  at::Tensor g = normal({3, 4}), kept = normal({3, 4}, 2) > 0;
  expect_as_eager({"aten::native_dropout_backward", {g, kept, number(1.25)}});
  g[0][0] = INFINITY;
  expect_as_eager({"aten::native_dropout_backward", {g, kept, number(2.)}});
}

TEST(LoopTable, LogitsAreEagers) {
  at::Tensor x = probabilities(), g = normal(x.sizes(), 2);
  for (const c10::IValue& bound : {none, number(0.), number(1e-3), number(0.2)}) {
    expect_as_eager({"aten::logit", {x, bound}});
    expect_as_eager({"aten::logit_backward", {g, x, bound}});
  }
}

TEST(LoopTable, LogarithmsOfPairsAreEagers) {
  at::Tensor x = pieces(), all = x.unsqueeze(1);
  expect_as_eager({"aten::logaddexp", {x, all}});
  expect_as_eager({"aten::xlogy.Tensor", {x, all}});
}

TEST(LoopTable, NormsOfEveryFormAreEagers) {
  for (const at::Tensor& x : laid_out({5, 4, 3}))
    for (double order : {0., 1., 2., double(INFINITY), -double(INFINITY)}) {
      expect_as_eager({"aten::norm.Scalar", {x, number(order)}});
      for (const c10::IValue& keep : {yes, no})
        for (std::vector<int64_t> dims : {std::vector<int64_t>{-1}, {2, 0}})
          expect_as_eager({"aten::norm.ScalarOpt_dim", {x, number(order), ints(dims), keep}});
    }
  expect_as_eager({"aten::norm.ScalarOpt_dim", {normal({3, 4}), none, ints({1})}});
  expect_left({"aten::norm.Scalar", {normal({3}), number(1.5)}});
}

TEST(LoopTable, ExtremesOfAllAreEagers) {
  for (const char* op : {"aten::max", "aten::min"}) {
    for (const at::Tensor& x : laid_out({5, 4, 3})) expect_as_eager({op, {x}});
    expect_as_eager({op, {normal({1})}});
    expect_as_eager({op, {pieces()}});
  }
}

/// A view is what the operator gives of it too: the results lie in the memory of what was viewed.
TEST(LoopTable, ViewsHaveTheirPlainNames) {
  GraphWriter w;
  Value x = w.call("aten::exp", {w.input({4, 6})});
  Value viewed = w.call("aten::_unsafe_view", {x, ints({2, 12})});
  Value strided = w.call("aten::as_strided", {viewed, ints({8, 3}), ints({3, 1}), number(int64_t(0))});
  Node& split = w.node("aten::unsafe_split.Tensor", {strided, number(int64_t(3)), number(int64_t(0))});
  w.graph.set_outputs(std::get<std::vector<Value>>(split.results[0]));
  Graph graph = decompose(w.graph, loop_decompositions());
  graph.verify();
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes()) ops.push_back(full_name(node.op));
  EXPECT_EQ(ops, std::vector<std::string>({"aten::exp", "aten::view", "aten::view", "aten::split.Tensor"}));
  at::Tensor data = normal({4, 6});
  Tensors expected = w.graph.run({data}), got = graph.run({data});
  ASSERT_EQ(got.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(got[i], expected[i]));
}

TEST(LoopTable, StridesThatSkipOrRepeatAreLeft) {
  at::Tensor x = normal({4, 6});
  expect_left({"aten::as_strided", {x, ints({4, 3}), ints({6, 2})}});
  expect_left({"aten::as_strided", {x, ints({6, 4}), ints({1, 6})}});
  expect_left({"aten::as_strided", {x, ints({3, 6}), ints({6, 1}), number(int64_t(6))}});
  expect_left({"aten::as_strided", {x.t(), ints({4, 6}), ints({6, 1})}});
}

TEST(LoopTable, BinaryCrossEntropyBackwardIsEagers) {
  at::Tensor x = probabilities().slice(0, 0, 7), t = normal({7}).sigmoid(), w = normal({7}, 3).abs();
  for (int64_t how : {0, 1, 2})
    for (const CallArgument& weight : {CallArgument(none), CallArgument(w)})
      expect_as_eager({"aten::binary_cross_entropy_backward",
                       {how == 0 ? normal({7}, 4) : normal({}, 4), x, t, weight, number(how)}});
}

TEST(LoopTable, WhatIsNoProbabilityHasNoCrossEntropy) {
  at::Tensor t = at::ones({2}, at::kDouble);
  const OneCall fine({"aten::binary_cross_entropy", {at::tensor({0.5, 0.2}, at::kDouble), t}}, at::kDouble);
  Graph graph = fine.decomposed();
  EXPECT_THROW(graph.run({at::tensor({0.5, 1.2}, at::kDouble), t}), c10::Error);
  EXPECT_THROW(graph.run({at::tensor({0.5, double(NAN)}, at::kDouble), t}), c10::Error);
}

}  // namespace tandem
