#include "passes/loop_calls.h"

#include <cmath>

namespace tandem {

TEST(LoopTable, SoftmaxesAreEagers) {
  for (const char* op : {"aten::_softmax", "aten::_log_softmax"}) {
    for (const at::Tensor& x : laid_out({5, 7, 3}))
      for (int64_t dim : {-1, 0, 1}) expect_as_eager({op, {x, number(dim), no}});
    expect_as_eager({op, {normal({}), number(int64_t(0)), no}});
    expect_as_eager({op, {normal({4, 1}), number(int64_t(1)), no}});
    expect_as_eager({op, {normal({3, 1000}) * 200, number(int64_t(-1)), no}}, 1e-12);
  }
}

TEST(LoopTable, SoftmaxesOfInfinitiesAreEagers) {
  at::Tensor x = normal({5, 6});
  x[0].fill_(-INFINITY);
  x[1][2] = -INFINITY;
  x[2][3] = INFINITY;
  x[3][4] = NAN;
  for (int64_t dim : {0, 1})
    for (const char* op : {"aten::_softmax", "aten::_log_softmax"})
      expect_as_eager({op, {x, number(dim), no}});
  for (std::vector<int64_t> dims : {std::vector<int64_t>{0}, {1}, {0, 1}})
    expect_as_eager({"aten::logsumexp", {x, ints(dims), yes}});
}

TEST(LoopTable, SafeSoftmaxIsEagers) {
  at::Tensor x = normal({5, 6});
  x[0].fill_(-INFINITY);
  x[1][2] = -INFINITY;
  x[3][4] = NAN;
  for (int64_t dim : {0, 1, -1}) expect_as_eager({"aten::_safe_softmax", {x, number(dim)}});
}

TEST(LoopTable, SoftmaxBackwardsAreEagers) {
  for (const at::Tensor& x : laid_out({5, 7, 3}))
    for (int64_t dim : {-1, 0, 1}) {
      at::Tensor g = normal(x.sizes(), 2);
      expect_as_eager({"aten::_softmax_backward_data", {g, at::softmax(x, dim), number(dim), TheirDtype()}});
      expect_as_eager(
          {"aten::_log_softmax_backward_data", {g, at::log_softmax(x, dim), number(dim), TheirDtype()}});
    }
  at::Tensor x = normal({3, 4}), g = normal({1, 1}).expand({3, 4});
  expect_as_eager({"aten::_softmax_backward_data", {g, x.softmax(1), number(int64_t(1)), TheirDtype()}});
}

TEST(LoopTable, LogsumexpIsEagers) {
  for (const at::Tensor& x : laid_out({5, 7, 3}))
    for (const c10::IValue& keep : {yes, no})
      for (std::vector<int64_t> dims : {std::vector<int64_t>{-1}, {0}, {2, 0}, {0, 1, 2}})
        expect_as_eager({"aten::logsumexp", {x, ints(dims), keep}});
  expect_as_eager({"aten::logsumexp", {normal({}), ints({0}), no}});
  expect_as_eager({"aten::logsumexp", {normal({6, 50}) * 1e3, ints({1}), no}}, 1e-12);
}

TEST(LoopTable, LayerNormIsEagers) {
  for (const at::Tensor& x : laid_out({4, 5, 6}))
    for (std::vector<int64_t> shape : {std::vector<int64_t>{6}, {5, 6}, {4, 5, 6}}) {
      at::Tensor weight = normal(shape, 2), bias = normal(shape, 3);
      expect_as_eager({"aten::native_layer_norm", {x, ints(shape), weight, bias, number(1e-5)}});
      expect_as_eager({"aten::native_layer_norm", {x, ints(shape), weight, none, number(1e-3)}});
      expect_as_eager({"aten::native_layer_norm", {x, ints(shape), none, none, number(1e-5)}});
    }
  expect_as_eager({"aten::native_layer_norm", {normal({4, 1}), ints({1}), none, none, number(1e-5)}}, 1e-12);
  // Squares of numbers far from 0 would cancel.
  expect_as_eager({"aten::native_layer_norm", {normal({4, 64}) + 1e4, ints({64}), none, none, number(1e-5)}},
                  1e-9);
}

TEST(LoopTable, LayerNormBackwardIsEagers) {
  for (const at::Tensor& x : laid_out({4, 5, 6}))
    for (std::vector<int64_t> shape : {std::vector<int64_t>{6}, {5, 6}, {4, 5, 6}}) {
      at::Tensor g = normal(x.sizes(), 4), weight = normal(shape, 2), bias = normal(shape, 3);
      auto [out, mean, rstd] = at::native_layer_norm(x, shape, weight, bias, 1e-5);
      for (std::vector<bool> wanted : {std::vector<bool>{true, true, true},
                                       {true, false, false},
                                       {false, true, true},
                                       {false, false, true}})
        expect_as_eager({"aten::native_layer_norm_backward",
                         {g, x, ints(shape), mean, rstd, weight, bias, mask_of(wanted)}},
                        1e-12);
      expect_as_eager({"aten::native_layer_norm_backward",
                       {g, x, ints(shape), mean, rstd, none, none, mask_of({true, false, false})}},
                      1e-12);
    }
}

TEST(LoopTable, GroupNormIsEagers) {
  for (const at::Tensor& x : in_memory_formats({2, 6, 4, 3}))
    for (int64_t groups : {1, 2, 6}) {
      at::Tensor weight = normal({6}, 2), bias = normal({6}, 3);
      std::vector<CallArgument> sizes = {number(int64_t(2)), number(int64_t(6)), number(int64_t(12)),
                                         number(groups), number(1e-5)};
      auto call = [&](std::vector<CallArgument> arguments) {
        arguments.insert(arguments.end(), sizes.begin(), sizes.end());
        expect_as_eager({"aten::native_group_norm", arguments});
      };
      call({x, weight, bias});
      call({x, none, bias});
      call({x, none, none});
    }
  expect_as_eager({"aten::native_group_norm",
                   {normal({3, 4}), none, none, number(int64_t(3)), number(int64_t(4)), number(int64_t(1)),
                    number(int64_t(2)), number(1e-5)}});
}

TEST(LoopTable, GroupNormBackwardIsEagers) {
  at::Tensor weight = normal({6}, 2);
  for (const at::Tensor& x : in_memory_formats({2, 6, 4, 3}))
    for (int64_t groups : {1, 2, 6}) {
      // in any other layout than that of x libtorch would misread it
      at::Tensor g = at::empty_like(x).copy_(normal(x.sizes(), 4));
      auto [out, mean, rstd] = at::native_group_norm(x, {}, {}, 2, 6, 12, groups, 1e-5);
      auto call = [&](CallArgument scale, std::vector<bool> wanted) {
        expect_as_eager({"aten::native_group_norm_backward",
                         {g, x, mean, rstd, scale, number(int64_t(2)), number(int64_t(6)),
                          number(int64_t(12)), number(groups), mask_of(wanted)}},
                        1e-12);
      };
      call(weight, {true, true, true});
      call(none, {true, false, false});
      // libtorch dies of this in the other memory format
      if (x.is_contiguous()) call(weight, {false, true, true});
    }
}

TEST(LoopTable, TensorsWithoutElementsAreLeft) {
  expect_left({"aten::_softmax", {normal({3, 0}), number(int64_t(1)), no}});
  expect_left({"aten::_softmax", {normal({0, 3}), number(int64_t(1)), no}});
  expect_left({"aten::native_layer_norm", {normal({0, 3}), ints({3}), none, none, number(1e-5)}});
  expect_left({"aten::mse_loss", {normal({0}), normal({0})}});
  expect_left({"aten::gelu", {normal({0})}});
  expect_left({"aten::logsumexp", {normal({3, 0}), ints({1})}});
}

TEST(LoopTable, OtherDtypesAreLeft) {
  for (at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    expect_left({"aten::_softmax", {normal({3, 4}), number(int64_t(1)), no}}, dtype);
    expect_left({"aten::gelu", {normal({3})}}, dtype);
    expect_left({"aten::native_layer_norm", {normal({2, 3}), ints({3}), none, none, number(1e-5)}}, dtype);
    expect_left({"aten::gelu_backward", {normal({3}), normal({3})}}, dtype);
    expect_left({"aten::masked_fill.Scalar", {normal({3}), at::ones({3}, at::kBool), number(1.)}}, dtype);
  }
  expect_left({"aten::mse_loss", {normal({3}), at::ones({3}, at::kFloat)}});
  expect_left({"aten::hardtanh", {at::arange(4), number(int64_t(0)), number(int64_t(2))}});
}

/// The same call, its tensors said to be on another device, which nothing here has to have.
TEST(LoopTable, OtherDevicesAreLeft) {
  const DecompositionTable table = loop_decompositions();
  for (const char* op : {"aten::gelu", "aten::hardswish", "aten::_safe_softmax"}) {
    Graph graph;
    Builder build(graph);
    Value x = build.input({2, 3}, at::kFloat, c10::Device(c10::kCUDA, 0));
    std::vector<Operand> arguments = {x};
    if (op == std::string("aten::_safe_softmax")) arguments.push_back(number(int64_t(1)));
    graph.set_outputs({build.call(op, arguments)});
    EXPECT_TRUE(has_operator(decompose(graph, table), op)) << op;
  }
}

TEST(LoopTable, WhatLoopsComputeInOneStepIsLeft) {
  at::Tensor x = normal({3});
  expect_left({"aten::sigmoid_backward", {x, x.sigmoid()}});
  expect_left({"aten::tanh_backward", {x, x.tanh()}});
  expect_left({"aten::threshold_backward", {x, x, number(0.)}});
}

TEST(LoopTable, HoldsTheDefaultRows) {
  const DecompositionTable table = loop_decompositions();
  for (const auto& [op, row] : default_decompositions())
    EXPECT_NE(table.contains(op), op == "aten::sigmoid_backward" || op == "aten::tanh_backward" ||
                                      op == "aten::threshold_backward")
        << op;
  for (const auto& [op, row] : table) EXPECT_NO_THROW(find_op(op));
}

/// Of an operator that has a built-in row, and of one that has none.
TEST(LoopTable, AUsersRowAnswersForWhateverItsUserWants) {
  for (const char* op : {"aten::frac", "aten::erfinv"}) {
    expect_left({op, {at::zeros({3}, at::kDouble)}}, at::kHalf);
    register_decomposition(op, [](Graph& graph, const Node& node) {
      Builder build(graph, node.phase);
      Value whole = build.call("aten::trunc", {node.arguments[0]});
      return std::vector<Value>{build.call("aten::sub.Tensor", {node.arguments[0], whole})};
    });
    EXPECT_FALSE(has_operator(OneCall({op, {at::zeros({3}, at::kDouble)}}, at::kHalf).decomposed(), op));
  }
}

}  // namespace tandem
