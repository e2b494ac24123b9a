// Programs that random search found, each made small; every one differed from eager once.
#include "runtime/compare.h"

namespace tandem {
namespace {

/// Right in any way: some of these run as they are.
void expect_same(const test::Maker& make, const Callable& body) { test::compare(body, make, {.compiled = false, .write_outputs = false}); }

const test::Maker plain = test::leaves({{3}, {3}}, {false, false}), leaf = test::leaves({{2, 3}}, {true}), computed = test::non_leaves({{2, 3}}, {true});

TEST(Found, AViewReturnedTwiceIsOneTensor) {
  expect_same(leaf, [](const Tensors& v) { at::Tensor a = v[0].t(); return Tensors{a, a}; });
}

TEST(Found, AnExpandedInputIsWritten) {
  expect_same([] { return test::Scene{{torch::randn({1}).expand({2})}, {}, {}}; }, [](const Tensors& v) { v[0].index_fill_(0, at::zeros({1}, at::kLong), 3); return Tensors{v[0]}; });
}

TEST(Found, AListThatNamesATensorTwice) {
  expect_same(plain, [](const Tensors& v) { at::_foreach_add_({v[0], v[0]}, {v[0], v[1]}); return Tensors{v[0]}; });
  expect_same(plain, [](const Tensors& v) { at::_foreach_add_({v[0], v[1]}, {v[1], v[0]}); return Tensors{v[0]}; });
}

TEST(Found, AListWriteCountsVersions) {
  expect_same(computed, [](const Tensors& v) { at::Tensor y = v[0].cos(); at::_foreach_mul_({v[0]}, 2); return Tensors{y}; });
}

TEST(Found, AWriteThroughOverlappingWindows) {
  expect_same(plain, [](const Tensors& v) { v[0].unfold(0, 2, 1).exp_(); return Tensors{v[0]}; });
}

TEST(Found, AViewMadeUnderNoGradOfWhatIsNotReturned) {
  expect_same(leaf, [](const Tensors& v) { at::Tensor y = v[0] + 3; at::NoGradGuard no_grad; return Tensors{y.t()}; });
}

TEST(Found, ALeafGetsOtherSizesUnderNoGrad) {
  expect_same(leaf, [](const Tensors& v) { at::NoGradGuard no_grad; v[0].unsqueeze_(0); return Tensors{v[0]}; });
}

TEST(Found, AViewOfAnInputGetsOtherStridesInPlace) {
  expect_same(plain, [](const Tensors& v) { v[0].slice(0, 0, 4, 2).transpose_(0, -1); return Tensors{v[1]}; });
}

TEST(Found, OneOfTwoGradientsIsRefused) {
  expect_same(computed, [](const Tensors& v) { at::Tensor c = v[0].cos(); v[0].sin_(); return Tensors{v[0], c}; });
}

TEST(Found, RandomNumbersIntoAnInputWithGaps) {
  expect_same([] { return test::Scene{{torch::randn({4}).slice(0, 0, 4, 2)}, {}, {}}; }, [](const Tensors& v) { v[0].bernoulli_(0.5); return Tensors{v[0]}; });
}

}  // namespace
}  // namespace tandem
