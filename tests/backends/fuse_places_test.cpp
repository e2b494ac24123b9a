// Where the largest and smallest elements are, in the loops of `fuse`: exactly where eager finds them.
#include "backends/fusing.h"
#include "native/code.h"
#include "support/compare.h"

namespace tandem {
namespace {

/// Ties, infinities, and NaN in some rows.
at::Tensor with_ties(at::IntArrayRef sizes, at::ScalarType type) {
  at::Tensor x = at::randint(-3, 4, sizes, at::kDouble);
  if (type == at::kByte || type == at::kBool) x = x.abs();
  if (!at::isFloatingType(type)) return x.to(type);
  const at::Tensor chosen = at::randint(0, 400, sizes);
  x.masked_fill_(chosen == 0, NAN).masked_fill_(chosen == 1, INFINITY).masked_fill_(chosen == 2, -INFINITY);
  if (x.dim() > 1) x.select(0, 0).fill_(-INFINITY);
  return x.to(type);
}

void expect_same(const Callable& function, const Tensors& inputs, const std::string& what) {
  const Tensors got = fused(function)(inputs), want = function(inputs);
  for (size_t k = 0; k < want.size(); ++k)
    EXPECT_TRUE(test::same_values(got[k], want[k])) << what << ", result " << k << "\n" << got[k] << want[k];
}

TEST(FusePlaces, ExtremesAndTheirPlacesAreOneKernel) {
  const Tensors inputs = {at::randn({40, 300})};
  expect_one_kernel([](const Tensors& in) { return Tensors{in[0].argmax(1)}; }, inputs);
  expect_one_kernel([](const Tensors& in) { return Tensors{in[0].argmin(0, true).eq(3)}; }, inputs);
  for (int64_t dim : {0, 1})
    expect_one_kernel(
        [dim](const Tensors& in) {
          auto [values, places] = in[0].max(dim, true);
          return Tensors{values, places, (in[0] - values).exp()};
        },
        inputs);
}

TEST(FusePlaces, WhatIsComputedIsStoredOnceBeforeItIsLookedFor) {
  const FusedGraph graph = inference_of(
      [](const Tensors& in) { return Tensors{in[0].exp().mul(in[0]).argmax(1)}; }, {at::randn({40, 300})});
  EXPECT_EQ(launches_of(graph), 2u) << to_string(graph);
}

TEST(FusePlaces, FewElementsAndFewRowsAreLeftToLibtorch) {
  const Callable both = [](const Tensors& in) {
    auto [values, places] = in[0].max(1);
    return Tensors{values, places};
  };
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{500, 4}, {2, 50000}}) {
    const FusedGraph graph = inference_of(both, {at::randn(sizes)});
    EXPECT_EQ(launches_of(graph), 0u) << to_string(graph);
    EXPECT_EQ(graph.graph.nodes().size(), 1u) << to_string(graph);
  }
}

TEST(FusePlaces, ArePlacesOfEager) {
  if (!native::can_compile()) GTEST_SKIP() << "there is no LLVM";
  torch::manual_seed(5);
  for (at::ScalarType type : {at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kFloat, at::kDouble})
    for (const std::vector<int64_t>& sizes :
         std::vector<std::vector<int64_t>>{{7}, {9}, {5, 3}, {12, 70}, {70, 9}, {1, 9}, {4, 1}, {8, 5, 37}}) {
      const at::Tensor x = with_ties(sizes, type);
      const Callable all = [](const Tensors& in) { return Tensors{in[0].argmax(), in[0].argmin()}; };
      expect_same(all, {x}, "all");
      expect_same(all, {x.transpose(0, -1)}, "all of a transposed one");
      for (int64_t dim = -1; dim < x.dim(); ++dim) {
        const Callable along = [dim](const Tensors& in) {
          auto [largest, first] = in[0].max(dim);
          auto [smallest, last] = in[0].min(dim, true);
          return Tensors{in[0].argmax(dim), in[0].argmin(dim, true), largest, first, smallest, last};
        };
        const std::string what = std::string(at::toString(type)) + " along " + std::to_string(dim);
        expect_same(along, {x}, what);
        expect_same(along, {x.transpose(0, -1)}, what + " transposed");
      }
    }
}

}  // namespace
}  // namespace tandem
