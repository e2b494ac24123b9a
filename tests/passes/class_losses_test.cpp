#include "passes/loop_calls.h"

#include <cmath>

namespace tandem {
namespace {

constexpr int64_t classes = 5;

/// Scores, the classes wanted, the name of the operator that takes them.
struct ClassCase {
  at::Tensor scores, wanted;
  std::string op;
};

std::vector<ClassCase> class_cases() {
  return {{normal({6, classes}), at::tensor({0, 4, 2, 2, -100, 1}, at::kLong), "aten::nll_loss"},
          {normal({classes, 6}).t(), at::tensor({0, 4, 2, 2, -100, 1}, at::kLong), "aten::nll_loss"},
          {normal({4, classes}), at::tensor({0, 4, 2, 1}, at::kByte), "aten::nll_loss"},
          {normal({classes}), at::scalar_tensor(3, at::kLong), "aten::nll_loss"},
          {normal({2, classes, 2, 3}), at::arange(12).view({2, 2, 3}) % classes, "aten::nll_loss2d"}};
}

/// All reductions, with and without weights; a class that is ignored, or none.
template <class Check>
void for_each_way(const ClassCase& each, Check&& check) {
  for (int64_t how : {0, 1, 2})
    for (int64_t ignored : {-100, 2})
      for (const CallArgument& weight : {CallArgument(none), CallArgument(normal({classes}, 7).abs())})
        if (ignored == -100 || each.wanted.min().item<int64_t>() >= 0) check(how, ignored, weight);
}

/// A graph of the call on scores that a loop computes, as a log_softmax does.
Graph on_computed_scores(const ClassCase& each, int64_t how, int64_t ignored, bool weighted,
                         at::ScalarType dtype) {
  GraphWriter w;
  Dims strides(each.scores.strides().begin(), each.scores.strides().end());
  Value x = w.input(Dims(each.scores.sizes().begin(), each.scores.sizes().end()), dtype, strides);
  Value wanted =
      w.input(Dims(each.wanted.sizes().begin(), each.wanted.sizes().end()), each.wanted.scalar_type());
  Value weight = weighted ? w.input({classes}, dtype) : Value();
  Value scores = w.call("aten::mul.Scalar", {x, number(1.)});
  Node& node = w.node((each.op + "_forward").c_str(), {scores, wanted, weight, number(how), number(ignored)});
  w.graph.set_outputs({std::get<Value>(node.results[0]), std::get<Value>(node.results[1])});
  return w.graph;
}

void expect_forward(const ClassCase& each, int64_t how, int64_t ignored, const CallArgument& weight) {
  auto* tensor = std::get_if<at::Tensor>(&weight);
  for (at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    Graph graph = on_computed_scores(each, how, ignored, tensor, dtype);
    Graph decomposed = decompose(graph, loop_decompositions());
    decomposed.verify();
    EXPECT_FALSE(has_operator(decomposed, each.op + "_forward"));
    EXPECT_FALSE(has_operator(decomposed, "aten::copy"));
    Tensors inputs = {each.scores.to(dtype), each.wanted};
    if (tensor) inputs.push_back(tensor->to(dtype));
    Tensors expected = graph.run(Tensors(inputs)), got = decomposed.run(Tensors(inputs));
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(got[i].sizes(), expected[i].sizes());
      EXPECT_TRUE(at::allclose(got[i], expected[i], dtype == at::kFloat ? 4e-7 : 1e-15, 0, true))
          << got[i] << expected[i];
    }
  }
}

}  // namespace

TEST(ClassLosses, BackwardsAreEagers) {
  for (const ClassCase& each : class_cases())
    for_each_way(each, [&](int64_t how, int64_t ignored, const CallArgument& weight) {
      const bool apart = how == 0 && each.scores.dim() > 1;
      at::Tensor g = apart ? normal(each.wanted.sizes(), 3) : normal({}, 3);
      expect_as_eager({(each.op + "_backward").c_str(),
                       {g, each.scores, each.wanted, weight, number(how), number(ignored),
                        at::scalar_tensor(2.5, at::kDouble)}});
    });
}

TEST(ClassLosses, LossesAreEagers) {
  for (const ClassCase& each : class_cases())
    for_each_way(each, [&](int64_t how, int64_t ignored, const CallArgument& weight) {
      expect_forward(each, how, ignored, weight);
    });
}

/// The mean of nothing is no number, and what is ignored has no gradient for all that.
TEST(ClassLosses, NothingMayCount) {
  const ClassCase ignored{normal({3, classes}), at::full({3}, -100, at::kLong), "aten::nll_loss"};
  for (int64_t how : {0, 1, 2}) expect_forward(ignored, how, -100, none);
  expect_as_eager({"aten::nll_loss_backward",
                   {normal({}), ignored.scores, ignored.wanted, none, number(int64_t(1)),
                    number(int64_t(-100)), at::scalar_tensor(0, at::kDouble)}});
}

/// 32 bits of it would be a class that there is.
TEST(ClassLosses, WhatIsIgnoredMayBeAnyNumber) {
  constexpr int64_t far = (int64_t(1) << 32) + 2;
  const ClassCase each{normal({3, classes}), at::tensor({int64_t(1), far, int64_t(2)}), "aten::nll_loss"};
  for (int64_t how : {0, 1, 2}) {
    expect_forward(each, how, far, none);
    expect_as_eager({"aten::nll_loss_backward",
                     {how == 0 ? normal({3}) : normal({}), each.scores, each.wanted, none, number(how),
                      number(far), at::scalar_tensor(2, at::kDouble)}});
  }
}

TEST(ClassLosses, OtherScoresMayBeAnything) {
  ClassCase each = class_cases()[0];
  each.scores[0][1] = INFINITY, each.scores[1][2] = NAN, each.scores[3][2] = -INFINITY;
  for (int64_t how : {0, 1, 2}) expect_forward(each, how, -100, none);
}

TEST(ClassLosses, AClassThatThereIsNotIsAnError) {
  for (int64_t wrong : {int64_t(-1), classes}) {
    const ClassCase each{normal({2, classes}), at::tensor({int64_t(1), wrong}), "aten::nll_loss"};
    Graph graph = on_computed_scores(each, 1, -100, false, at::kDouble);
    EXPECT_THROW(graph.run({each.scores, each.wanted}), c10::Error);
    EXPECT_THROW(decompose(graph, loop_decompositions()).run({each.scores, each.wanted}), c10::Error);
  }
}

/// libtorch reads one score of each row, a loop all of them.
TEST(ClassLosses, OfScoresInMemoryAreLeft) {
  const ClassCase each = class_cases()[0];
  expect_left({"aten::nll_loss_forward",
               {each.scores, each.wanted, none, number(int64_t(1)), number(int64_t(-100))}});
}

}  // namespace tandem
