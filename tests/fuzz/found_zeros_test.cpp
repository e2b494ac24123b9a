// Programs that random search found, some derivatives of which are zeros without memory: these stay zero
// whatever they are multiplied by, in whatever node that is done.
#include "fuzz/found.h"

namespace tandem {
namespace {

void expect_alike(const std::function<fuzz::Scene()>& given, uint64_t data,
                  const std::function<Tensors(Tensors)>& run) {
  auto scene = [&](uint64_t seed, const fuzz::Scene*) {
    torch::manual_seed(seed);
    return given();
  };
  std::vector<size_t> arguments;
  for (size_t i = 0; i < given().pool.size(); ++i) arguments.push_back(i);
  found::expect_alike({scene, arguments, run, data, /*higher_orders=*/true});
}

TEST(FoundZeros, GoFromNodeToNode) {
  expect_alike([] { return found::one_leaf({}); }, 127185,
               [](Tensors v) {
                 at::Tensor infinite = at::var(v[0], at::IntArrayRef{0}, true);
                 return Tensors{at::abs(infinite), infinite};
               });
}

TEST(FoundZeros, AreAddedInPlaceLikeOthers) {
  expect_alike([] { return found::one_leaf({1}); }, 582810,
               [](Tensors v) {
                 at::Tensor square = at::abs(at::linear(v[0], v[0]));
                 return Tensors{square.index_fill_(0, at::zeros({1}, at::kLong), 3)};
               });
  auto two = [] {
    at::Tensor a = found::numbers({2}).requires_grad_(), b = found::numbers({2}).requires_grad_();
    return fuzz::Scene{{a, b}, {a, b}};
  };
  expect_alike(two, 611507, [](Tensors v) {
    at::Tensor product = at::_foreach_addcmul({v[1], v[0]}, {v[0], v[1]}, {v[1], v[1]}, 1).at(0);
    return Tensors{at::abs(at::dropout_(product, 0.5, true))};
  });
}

TEST(FoundZeros, HaveStridesOfTheirOwn) {
  auto two = [] {
    at::Tensor a = found::numbers({2, 1}), b = found::numbers({2, 1}).requires_grad_();
    return fuzz::Scene{{a, b}, {b}};
  };
  expect_alike(two, 458157, [](Tensors v) { return Tensors{at::abs(at::cat({v[1], v[0]}, 1))}; });
}

TEST(FoundZeros, AreDifferentiatedWhereTheForwardIsGone) {
  auto computed = [] {
    at::Tensor leaf = found::numbers({}).requires_grad_();
    return fuzz::Scene{{leaf.clone()}, {leaf}};
  };
  expect_alike(computed, 977160, [](Tensors v) {
    v[0].sin_();
    return Tensors{at::abs(v[0])};
  });
}

/// Where a gradient comes from another node of the call, and where it is what the caller asked for.
TEST(FoundZeros, LeaveACallAsEagersDo) {
  const at::Tensor x = torch::tensor({0.0, 2.0}, at::kDouble).requires_grad_();
  auto program = [](at::Tensor x) {
    at::Tensor infinite = x.log();
    return Tensors{infinite, infinite.sgn()};
  };
  const auto compiled = compile(program, Options{.backend = "eager"});
  auto gradient = [&](const Tensors& outputs) { return torch::autograd::grad({outputs[1].sum()}, {x})[0]; };
  const at::Tensor want = gradient(program(x)), got = gradient(compiled(x));
  EXPECT_TRUE(want._is_zerotensor());
  EXPECT_TRUE(got._is_zerotensor());
  EXPECT_TRUE(at::equal(want.clone(), got.clone()));
}

}  // namespace
}  // namespace tandem
