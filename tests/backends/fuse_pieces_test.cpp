// What is put together of pieces, by concatenation and padding, in the loops of `fuse`: each piece is
// computed where it belongs.
#include "backends/fusing.h"
#include "native/code.h"
#include "support/compare.h"

namespace tandem {
namespace {

Tensors matrices() { return {at::randn({5, 33}), at::randn({5, 41})}; }
Tensors cube() { return {at::randn({3, 4, 40})}; }

TEST(FusePieces, EachPartOfAConcatenationIsOneLaunch) {
  expect_launches(
      2, [](const Tensors& in) { return Tensors{at::cat({in[0].exp(), in[1]}, 1).tanh()}; }, matrices());
  expect_launches(3, [](const Tensors& in) { return Tensors{at::stack({in[0].exp(), in[0], in[0] * 2}, 1)}; },
                  {at::randn({5, 33})});
}

TEST(FusePieces, WhatIsMadeForAPieceIsStoredBesideIt) {
  expect_launches(
      2,
      [](const Tensors& in) {
        at::Tensor a = in[0].exp(), b = in[1].exp();
        return Tensors{at::cat({a, b}, 1), a, b};
      },
      matrices());
}

TEST(FusePieces, APaddedDimensionHasAPartBeforeAndOneBehind) {
  expect_launches(
      5, [](const Tensors& in) { return Tensors{at::constant_pad_nd(in[0].exp(), {1, 2, 3, 4}, 0.5)}; },
      cube());
  expect_launches(
      1, [](const Tensors& in) { return Tensors{at::constant_pad_nd(in[0], {-1, -2, -1, 0}).exp()}; },
      cube());
}

TEST(FusePieces, WhatOnlyMovesIsLeftToLibtorch) {
  EXPECT_EQ(launches_of(inference_of([](const Tensors& in) { return Tensors{at::cat({in[0], in[1]}, 1)}; },
                                     matrices())),
            0u);
  EXPECT_EQ(launches_of(inference_of(
                [](const Tensors& in) { return Tensors{at::constant_pad_nd(in[0], {1, 1})}; }, cube())),
            0u);
}

TEST(FusePieces, RowsOfFewElementsAreLeftToLibtorch) {
  const FusedGraph graph = inference_of(
      [](const Tensors& in) { return Tensors{at::cat({in[0].relu(), in[0]}, 1)}; }, {at::randn({20000, 4})});
  EXPECT_EQ(launches_of(graph), 1u) << to_string(graph);
  EXPECT_EQ(graph.graph.nodes().size(), 2u) << to_string(graph);
}

TEST(FusePieces, FoldsAlongOtherDimensionsAreTakenInParts) {
  expect_launches(
      2, [](const Tensors& in) { return Tensors{at::softmax(at::cat({in[0], in[0] * 2}, 0), -1)}; }, cube());
}

TEST(FusePieces, GradientsOfSlicesAreOneGroup) {
  const Callable gated = [](const Tensors& in) {
    return Tensors{in[0].slice(1, 0, 30) * in[0].slice(1, 30, 60).sigmoid()};
  };
  const FusedGraph backward =
      fuse(fused(gated).explain({at::randn({4, 60}).requires_grad_()}).backward, /*threads=*/1);
  EXPECT_EQ(launches_of(backward), 2u) << to_string(backward);
  EXPECT_EQ(backward.graph.nodes().size(), 1u) << to_string(backward);
}

std::function<Tensors()> leaves(std::vector<std::vector<int64_t>> all) {
  return [all] {
    Tensors made;
    for (const auto& sizes : all) made.push_back(at::randn(sizes).requires_grad_());
    return made;
  };
}

TEST(FusePieces, ConcatenationsAreEagers) {
  if (!native::can_compile()) GTEST_SKIP() << "there is no LLVM";
  for (int64_t dim : {0, 1, -1}) {
    const Callable joined = [dim](const Tensors& in) {
      at::Tensor y = at::cat({in[0].exp(), in[1], in[0].tanh()}, dim);
      return Tensors{y * 2, y.sum(0), y.t().contiguous().tanh()};
    };
    expect_near_eager(joined, leaves({{7, 5}, {7, 5}}));
    expect_near_eager(joined, leaves({{1, 1}, {1, 1}}));
    expect_near_eager(joined, leaves({{40, 1}, {40, 1}}));
    expect_near_eager(joined, leaves({{1, 70}, {1, 70}}));
    expect_near_eager([&](const Tensors& in) { return Tensors{joined({in[0].t(), in[1].slice(1, 0, 6)})}; },
                      leaves({{6, 9}, {9, 12}}));
    expect_near_eager([dim](const Tensors& in) { return Tensors{at::stack({in[0].exp(), in[1]}, dim) + 1}; },
                      leaves({{6, 9}, {6, 9}}));
  }
  // Joined dimensions, and others apart.
  expect_near_eager(
      [](const Tensors& in) {
        at::Tensor y = at::cat({in[0].exp(), in[1]}, 1);
        return Tensors{y.flatten().tanh(), y.view({-1, 2}).exp(), y.permute({2, 0, 1}).contiguous() + 1};
      },
      leaves({{3, 4, 6}, {3, 2, 6}}));
}

TEST(FusePieces, EmptyTensorsAreNoPieces) {
  if (!native::can_compile()) GTEST_SKIP() << "there is no LLVM";
  for (const std::vector<int64_t>& empty : std::vector<std::vector<int64_t>>{{0}, {4, 0}})
    expect_near_eager([](const Tensors& in) { return Tensors{at::cat({in[1], in[0].exp(), in[1]}, 1)}; },
                      leaves({{4, 5}, empty}));
  expect_near_eager([](const Tensors& in) { return Tensors{at::cat({in[0].exp(), in[1]}, 1)}; },
                    leaves({{0, 5}, {0, 2}}));
  expect_near_eager([](const Tensors& in) { return Tensors{at::constant_pad_nd(in[0], {2, 1}, 3).exp()}; },
                    leaves({{4, 0}}));
}

TEST(FusePieces, PaddingIsEagers) {
  if (!native::can_compile()) GTEST_SKIP() << "there is no LLVM";
  for (const std::vector<int64_t>& added : std::vector<std::vector<int64_t>>{
           {1, 2}, {0, 0}, {-1, 2}, {2, -1}, {-1, -1}, {0, 3, 1, 0}, {-1, 1, 2, -2}, {40, 0}, {-3, 3}})
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{4, 5}, {2, 3, 36}, {4, 4}})
      expect_near_eager(
          [&](const Tensors& in) {
            at::Tensor y = at::constant_pad_nd(in[0].exp(), added, 0.25);
            return Tensors{y, y.tanh() + at::constant_pad_nd(in[0], added, -INFINITY).sigmoid()};
          },
          leaves({sizes}));
  // All of what is padded is cut off.
  expect_near_eager([](const Tensors& in) { return Tensors{at::constant_pad_nd(in[0].exp(), {-4, 6}) * 2}; },
                    leaves({{3, 4}}));
}

TEST(FusePieces, GradientsOfSlicesAreEagers) {
  if (!native::can_compile()) GTEST_SKIP() << "there is no LLVM";
  expect_near_eager(
      [](const Tensors& in) {
        at::Tensor x = in[0];
        return Tensors{x.slice(1, 0, 20) * x.slice(1, 20, 40).sigmoid(), x.slice(1, 3, 30, 4).exp(),
                       x.select(0, -1).tanh(), x.select(1, 2) * 2, x.slice(0, -2, 7).exp()};
      },
      leaves({{5, 40}}));
}

TEST(FusePieces, AllTypesAreEagers) {
  if (!native::can_compile()) GTEST_SKIP() << "there is no LLVM";
  for (at::ScalarType a : {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kDouble})
    for (at::ScalarType b : {a, at::kInt, at::kFloat}) {
      const Callable function = [](const Tensors& in) {
        at::Tensor y = at::cat({in[0], in[1].eq(0)}, 1), z = at::cat({in[0].ne(1), in[1]}, 0);
        const at::Tensor padded = at::constant_pad_nd(in[0], {2, 1, -1, 1}, 1);
        return Tensors{y, z, padded.eq(in[1].select(0, 0).select(0, 0))};
      };
      const Tensors inputs = {at::randint(0, 3, {3, 37}).to(a), at::randint(0, 3, {3, 37}).to(b)};
      const Tensors got = fused(function)(inputs), want = function(inputs);
      for (size_t k = 0; k < want.size(); ++k)
        EXPECT_TRUE(test::same_values(got[k], want[k])) << a << ' ' << b << ' ' << k;
    }
}

}  // namespace
}  // namespace tandem
