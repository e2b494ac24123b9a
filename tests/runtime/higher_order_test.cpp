// Gradients of gradients through compiled functions, to any order.
#include "runtime/orders.h"

namespace tandem {
namespace {

using namespace test::higher;
using test::contains;

// ---- operators

TEST(HigherOrder, Products) {
  expect_orders([](const Tensors& in) { return Tensors{in[0] * in[1] * in[0]}; }, {{3}, {3}}, 4);
}

TEST(HigherOrder, Tanh) {
  expect_orders([](const Tensors& in) { return Tensors{(in[0] * in[1]).tanh()}; }, {{3}, {3}}, 4);
}

TEST(HigherOrder, LinearFunctions) {
  expect_orders([](const Tensors& in) { return Tensors{in[0].view({2, 3}).t() + 1, (in[0] + in[1]) * 2}; },
                {{6}, {6}}, 3);
}

TEST(HigherOrder, MatrixProducts) {
  expect_orders([](const Tensors& in) { return Tensors{in[0].mm(in[1]).sigmoid().matmul(in[2])}; },
                {{3, 4}, {4, 5}, {5}}, 3);
}

TEST(HigherOrder, Normalisations) {
  expect_orders([](const Tensors& in) { return Tensors{at::layer_norm(in[0], {5}, in[1], in[2])}; },
                {{4, 5}, {5}, {5}}, 3);
  expect_orders([](const Tensors& in) { return Tensors{at::group_norm(in[0], 2, in[1], in[2])}; },
                {{2, 4, 3}, {4}, {4}}, 2);
}

TEST(HigherOrder, Softmax) {
  expect_orders([](const Tensors& in) { return Tensors{in[0].softmax(1), in[0].log_softmax(0)}; }, {{3, 4}},
                3);
}

TEST(HigherOrder, Convolutions) {
  expect_orders([](const Tensors& in) { return Tensors{at::conv2d(in[0], in[1], in[2], 1, 1).tanh()}; },
                {{2, 3, 5, 5}, {4, 3, 3, 3}, {4}}, 3);
}

TEST(HigherOrder, Embeddings) {
  at::Tensor indices = torch::tensor({0, 2, 2, 1});
  expect_orders([=](const Tensors& in) { return Tensors{at::embedding(in[0], indices).pow(3)}; }, {{4, 3}},
                3);
}

TEST(HigherOrder, Gelu) {
  expect_orders([](const Tensors& in) { return Tensors{at::gelu(in[0]) * at::gelu(in[0], "tanh")}; }, {{4}},
                2);
}

TEST(HigherOrder, Losses) {
  at::Tensor target = torch::tensor({1, 0, 2});
  expect_orders(
      [=](const Tensors& in) {
        return Tensors{at::cross_entropy_loss(in[0], target), at::mse_loss(in[0], in[1])};
      },
      {{3, 4}, {3, 4}}, 3);
}

TEST(HigherOrder, ViewsIndexingAndConcatenation) {
  expect_orders(
      [](const Tensors& in) {
        at::Tensor a = at::cat({in[0].slice(0, 1), in[1].unsqueeze(0)}, 0);
        return Tensors{a.t().reshape({-1}).cumsum(0) * a.sum(),
                       a.index_select(0, torch::tensor({1, 1})).exp()};
      },
      {{3, 2}, {2}}, 3);
}

TEST(HigherOrder, WritesInsideTheFunction) {
  expect_orders(
      [](const Tensors& in) {
        at::Tensor a = in[0] * in[1];
        a.mul_(in[0]).select(0, 1).add_(in[1].select(0, 0));
        return Tensors{a.sin_() * in[0]};
      },
      {{3, 2}, {3, 2}}, 3);
}

TEST(HigherOrder, ComplexNumbers) {
  expect_orders(
      [](const Tensors& in) {
        return Tensors{(at::complex(in[0], in[1]) * at::complex(in[1], in[0]).conj()).abs().pow(3)};
      },
      {{3}, {3}}, 3);
}

at::Tensor symmetric(const at::Tensor& a) { return a + a.t() + at::diag(torch::arange(1., 4., f64)) * 4; }

/// Some formulas read other saved values when the gradient is to be differentiated, or read only some of them
/// at first.
TEST(HigherOrder, Eigenvalues) {
  expect_orders([](const Tensors& in) { return Tensors{std::get<0>(at::linalg_eigh(symmetric(in[0])))}; },
                {{3, 3}}, 3);
}

TEST(HigherOrder, Determinants) {
  expect_orders([](const Tensors& in) { return Tensors{std::get<1>(at::linalg_slogdet(symmetric(in[0])))}; },
                {{3, 3}}, 3);
}

TEST(HigherOrder, WhereTheNextOrderDependsOnDataTheFunctionRunsAsItIs) {
  Callable trace = [](const Tensors& in) { return Tensors{at::trace(in[0] * in[0])}; };
  Compiled fast(trace, {});
  EXPECT_TRUE(contains(fast.explain({double_leaf({3, 3})}).eager_reason, "second derivative"));
  at::Tensor x = double_leaf({3, 3});
  auto second = [&](const Callable& f) { return grad(grad(f({x})[0], {x})[0].sin().sum(), {x}, false)[0]; };
  expect_close(second([&](const Tensors& in) { return fast(in); }), second(trace), "the second gradient");
}

TEST(HigherOrder, LinearSystems) {
  expect_orders(
      [](const Tensors& in) {
        return Tensors{at::linalg_solve(symmetric(in[0]), in[1]), at::linalg_inv(symmetric(in[0]))};
      },
      {{3, 3}, {3, 2}}, 3);
}

TEST(HigherOrder, SingularValues) {
  expect_orders([](const Tensors& in) { return Tensors{at::linalg_svdvals(in[0])}; }, {{3, 3}}, 2);
}

TEST(HigherOrder, Cholesky) {
  expect_orders(
      [](const Tensors& in) { return Tensors{at::linalg_cholesky(symmetric(in[0]).mm(symmetric(in[0])))}; },
      {{3, 3}}, 2);
}

TEST(HigherOrder, NormsAndDeviations) {
  expect_orders([](const Tensors& in) { return Tensors{in[0].norm(), in[0].std(0)}; }, {{3, 2}}, 3);
}

// ---- random numbers and statistics

TEST(HigherOrder, DropoutKeepsItsMask) {
  expect_orders(
      [](const Tensors& in) {
        return Tensors{at::dropout(in[0], 0.5, true) * at::dropout(in[0], 0.5, true).exp()};
      },
      {{20}}, 3);
}

TEST(HigherOrder, RunningStatisticsAreWrittenOnce) {
  for (bool keep : {true, false}) {
    at::Tensor mean = torch::zeros(3, f64), variance = torch::ones(3, f64);
    Callable fn = [&](const Tensors& in) {
      return Tensors{at::batch_norm(in[0], in[1], in[2], mean, variance, true, 0.1, 1e-5, false)};
    };
    expect_same(fn, {{5, 3}, {3}, {3}},
                [&](const Callable& f, const Tensors& leaves) {
                  mean.zero_();
                  variance.fill_(1);
                  Tensors all = orders(f, leaves, 3, true);
                  all.push_back(mean.clone());
                  all.push_back(variance.clone());
                  return all;
                },
                {.keep_input_mutations = keep});
  }
}

TEST(HigherOrder, AnInputThatIsWritten) {
  for (bool keep : {true, false})
    expect_same(
        [](const Tensors& in) {
          at::Tensor y = in[0].exp();
          in[1].add_(1);
          in[2].mul_(in[0]);
          return Tensors{y * in[1] * in[2]};
        },
        {{3}, {3}, {3}},
        [](const Callable& f, const Tensors& leaves) {
          at::Tensor buffer = leaves[1].detach().clone(), written = leaves[2] * 1;
          auto bound = [&](const Tensors&) {
            Tensors out = f({leaves[0], buffer, written});
            out.push_back(written * 2);
            return out;
          };
          Tensors all = orders(bound, leaves, 3, true);
          all.push_back(buffer);
          return all;
        },
        {.keep_input_mutations = keep});
}

}  // namespace
}  // namespace tandem
