#include "passes/loop_calls.h"

#include <cmath>

namespace tandem {
namespace {

c10::IValue integer(int64_t value) { return value; }

/// Values on both sides of every kink, the kinks themselves, and some that overflow in an exp.
at::Tensor far_spread() {
  return at::cat({at::linspace(-8, 8, 65, at::kDouble), at::tensor({-800., -100., -30., 30., 100., 800.})});
}
at::Tensor with_infinities() { return at::tensor({-INFINITY, -1., 0., 1., double(INFINITY), double(NAN)}); }

struct BatchNormData {
  at::Tensor x, weight = normal({3}, 2), bias = normal({3}, 3), mean = normal({3}, 4),
                variance = normal({3}, 5).abs() + 0.1;
};

/// Of every rank, and in every layout of one.
std::vector<BatchNormData> batches() {
  std::vector<BatchNormData> all;
  for (const at::Tensor& x : laid_out({4, 3, 5, 2})) all.push_back({x});
  for (std::vector<int64_t> sizes : {std::vector<int64_t>{8, 3}, {4, 3, 5}, {2, 3, 2, 3, 2}, {1, 3, 2, 1}})
    all.push_back({normal(sizes)});
  return all;
}

}  // namespace

TEST(LoopTable, TrainingBatchNormIsEagers) {
  for (const auto& [x, weight, bias, mean, variance] : batches()) {
    for (const char* op : {"aten::native_batch_norm", "aten::_native_batch_norm_legit"})
      expect_as_eager({op, {x, weight, bias, mean, variance, yes, number(0.1), number(1e-5)}, {3, 4}});
    expect_as_eager(
        {"aten::native_batch_norm", {x, weight, bias, none, none, yes, number(0.1), number(1e-3)}});
    expect_as_eager(
        {"aten::native_batch_norm", {x, none, none, mean, variance, yes, number(0.7), number(1e-5)}, {3, 4}});
    expect_as_eager(
        {"aten::_native_batch_norm_legit.no_stats", {x, weight, none, yes, number(0.1), number(1e-5)}});
    expect_as_eager({"aten::_native_batch_norm_legit_functional",
                     {x, weight, bias, mean, variance, yes, number(0.3), number(1e-5)}});
    expect_as_eager({"aten::_batch_norm_with_update",
                     {x, weight, bias, mean, variance, number(0.1), number(1e-5)},
                     {3, 4}});
    expect_as_eager({"aten::_batch_norm_with_update_functional",
                     {x, weight, bias, mean, variance, number(0.1), number(1e-5)}});
  }
}

TEST(LoopTable, InferringBatchNormIsEagers) {
  for (const auto& [x, weight, bias, mean, variance] : batches()) {
    expect_as_eager(
        {"aten::native_batch_norm", {x, weight, bias, mean, variance, no, number(0.1), number(1e-5)}});
    expect_as_eager(
        {"aten::native_batch_norm", {x, none, none, mean, variance, no, number(0.1), number(1e-5)}});
    expect_as_eager({"aten::_native_batch_norm_legit_no_training",
                     {x, weight, bias, mean, variance, number(0.1), number(1e-5)}});
    expect_as_eager(
        {"aten::_batch_norm_no_update", {x, weight, bias, mean, variance, number(0.1), number(1e-5)}});
  }
}

TEST(LoopTable, BatchNormOfOneElementIsEagers) {
  at::Tensor x = normal({1, 3}), mean = normal({3}, 4), variance = at::ones({3}, at::kDouble);
  expect_as_eager(
      {"aten::native_batch_norm", {x, none, none, mean, variance, yes, number(0.1), number(1e-5)}, {3, 4}});
}

/// Only the call itself can write what nobody is told of.
TEST(LoopTable, BatchNormThatWritesUnseenIsLeft) {
  auto [x, weight, bias, mean, variance] = batches()[0];
  expect_left({"aten::native_batch_norm",
               {x, weight, bias, mean.clone(), variance.clone(), yes, number(0.1), number(1e-5)}});
}

TEST(LoopTable, BatchNormBackwardIsEagers) {
  for (const auto& [x, weight, bias, mean, variance] : batches()) {
    at::Tensor g = at::empty_like(x).copy_(normal(x.sizes(), 6));
    auto [out, saved_mean, saved_inverse] = at::native_batch_norm(x, weight, bias, {}, {}, true, 0.1, 1e-5);
    auto call = [&](const c10::IValue& trained, CallArgument scale, std::vector<bool> wanted) {
      expect_as_eager(
          {"aten::native_batch_norm_backward",
           {g, x, scale, mean, variance, saved_mean, saved_inverse, trained, number(1e-5), mask_of(wanted)}},
          1e-12);
    };
    for (const c10::IValue& trained : {yes, no}) {
      call(trained, weight, {true, true, true});
      call(trained, weight, {true, false, false});
      call(trained, weight, {false, true, true});
      call(trained, none, {true, true, true});
    }
    expect_as_eager({"aten::batch_norm_backward",
                     {g, x, weight, mean, variance, saved_mean, saved_inverse, yes, number(1e-5),
                      mask_of({true, true, true}), at::empty({0}, at::kByte)}},
                    1e-12);
  }
}

TEST(LoopTable, MomentsAreEagers) {
  for (const char* op : {"aten::var.correction", "aten::std.correction", "aten::var_mean.correction",
                         "aten::std_mean.correction"}) {
    for (const at::Tensor& x : laid_out({5, 4, 3}))
      for (const c10::IValue& dims : {none, ints({-1}), ints({2, 0}), ints({})})
        for (const c10::IValue& keep : {yes, no})
          for (const c10::IValue& correction : {none, number(int64_t(0)), number(1.5)})
            expect_as_eager({op, {x, dims, correction, keep}}, 1e-13, 1);
    expect_as_eager({op, {normal({3, 1}), ints({1})}});
    expect_as_eager({op, {normal({3, 2}), ints({1}), number(int64_t(2))}});
    expect_as_eager({op, {normal({}), none, number(int64_t(0))}});
    expect_as_eager({op, {normal({4, 50}) + 1e4, ints({1})}}, 1e-11);
  }
}

TEST(LoopTable, VectorNormsAreEagers) {
  for (double order : {1., 2., double(INFINITY), -double(INFINITY)}) {
    for (const at::Tensor& x : laid_out({5, 4, 3}))
      for (const c10::IValue& dims : {none, ints({-1}), ints({2, 0})})
        for (const c10::IValue& keep : {yes, no})
          expect_as_eager({"aten::linalg_vector_norm", {x, number(order), dims, keep}});
    expect_as_eager({"aten::linalg_vector_norm", {normal({}), number(order)}});
    expect_as_eager({"aten::linalg_vector_norm", {with_infinities(), number(order)}});
    expect_as_eager({"aten::linalg_vector_norm", {normal({3, 1}), number(order), ints({1})}});
  }
  expect_left({"aten::linalg_vector_norm", {normal({3}), number(3.)}});
}

TEST(LoopTable, LossesAreEagers) {
  at::Tensor x = normal({4, 5}) * 2, t = normal({4, 5}, 2), p = x.sigmoid(), w = normal({4, 5}, 3).abs();
  x[0] = t[0] + 0.5, x[1] = t[1], x[2][0] = NAN;
  at::Tensor sideways = normal({5, 4}).t(), own = t.sigmoid();
  for (int64_t how : {0, 1, 2}) {
    expect_as_eager({"aten::mse_loss", {x, t, integer(how)}});
    expect_as_eager({"aten::mse_loss", {sideways, t, integer(how)}});
    expect_as_eager({"aten::mse_loss", {normal({}), normal({}, 2), integer(how)}});
    for (double beta : {0.5, 1., 2.}) {
      expect_as_eager({"aten::smooth_l1_loss", {x, t, integer(how), number(beta)}});
      expect_as_eager({"aten::huber_loss", {x, t, integer(how), number(beta)}});
    }
    for (const CallArgument& weight : {CallArgument(none), CallArgument(w), CallArgument(w[0])}) {
      expect_as_eager({"aten::binary_cross_entropy", {p, own, weight, integer(how)}});
      for (const CallArgument& positive : {CallArgument(none), CallArgument(w[1])})
        expect_as_eager(
            {"aten::binary_cross_entropy_with_logits", {x * 100, own, weight, positive, integer(how)}});
    }
    at::Tensor certain = at::tensor({0., 1., 0., 1.}, at::kDouble);
    expect_as_eager({"aten::binary_cross_entropy",
                     {certain, at::tensor({1., 1., 0.3, 0.}, at::kDouble), none, integer(how)}});
  }
}

TEST(LoopTable, LossBackwardsAreEagers) {
  at::Tensor x = normal({4, 5}) * 2, t = normal({4, 5}, 2);
  x[0] = t[0] + 0.5, x[1] = t[1], x[2][0] = NAN;
  for (int64_t how : {0, 1, 2})
    for (const at::Tensor& input : {x, normal({5, 4}).t()}) {
      at::Tensor g = how == 0 ? normal({4, 5}, 3) : normal({}, 3);
      expect_as_eager({"aten::mse_loss_backward", {g, input, t, integer(how)}});
      for (double beta : {0.5, 1., 2.}) {
        expect_as_eager({"aten::smooth_l1_loss_backward", {g, input, t, integer(how), number(beta)}});
        expect_as_eager({"aten::huber_loss_backward", {g, input, t, integer(how), number(beta)}});
      }
    }
}

TEST(LoopTable, GeluIsEagers) {
  // Of infinity one of libtorch's kernels gives infinity and the other no number.
  for (const at::Tensor& x : {far_spread(), normal({3, 4}).t(), normal({}), at::tensor({0., double(NAN)})})
    for (const char* form : {"none", "tanh"}) expect_as_eager({"aten::gelu", {x, c10::IValue(form)}});
}

TEST(LoopTable, ActivationsAreEagers) {
  for (const at::Tensor& x : {far_spread(), with_infinities(), normal({3, 4}).t(), normal({})}) {
    at::Tensor g = normal(x.sizes(), 2);
    expect_as_eager({"aten::silu", {x}});
    for (double beta : {0.5, 1., 3.}) {
      expect_as_eager({"aten::softplus", {x, number(beta), number(20.)}});
      expect_as_eager({"aten::softplus_backward", {g, x, number(beta), number(20.)}});
    }
    expect_as_eager({"aten::log_sigmoid_forward", {x}});
    expect_as_eager({"aten::log_sigmoid_backward", {g, x, (-x.abs()).exp()}});
    expect_as_eager({"aten::mish", {x}});
    expect_as_eager({"aten::mish_backward", {g, x}});
  }
}

}  // namespace tandem
