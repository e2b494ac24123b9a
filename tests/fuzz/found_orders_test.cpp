// Programs that random search found, of which a gradient of a gradient is nothing but what rounding leaves of
// terms that cancel each other.
#include "fuzz/found.h"

#include <numeric>

namespace tandem {
namespace {

/// On the data for which the search found it, and with each partitioner. The gradients meet outside of the
/// call, in a leaf that several outputs are computed from, so their sums are made in another order.
void expect_rounded_otherwise(const std::function<fuzz::Scene()>& given, uint64_t data,
                              const std::function<Tensors(Tensors)>& run) {
  auto scene = [&](uint64_t seed, const fuzz::Scene*) {
    torch::manual_seed(seed);
    return given();
  };
  std::vector<size_t> arguments(given().pool.size());
  std::iota(arguments.begin(), arguments.end(), 0);
  for (const char* partitioner : {"min_cut", "default", "recompute_all", "save_all"}) {
    fuzz::Setup setup;
    setup.options.partitioner = partitioner;
    const auto outcome = found::expect_alike({scene, arguments, run, data, /*higher_orders=*/true}, setup);
    EXPECT_TRUE(outcome.concessions.contains("higher orders are rounded otherwise")) << partitioner;
  }
}

TEST(FoundOrders, AThirdOrderThatIsZeroButForRounding) {
  expect_rounded_otherwise([] { return found::one_leaf({3}); }, 521980,
                           [](Tensors v) {
                             at::Tensor one = at::div(v[0], v[0]),
                                        product = at::mul(at::fmod(one, v[0]), one);
                             return Tensors{product, product, one};
                           });
}

TEST(FoundOrders, ASecondOrderThatIsZeroButForRounding) {
  auto given = [] {
    at::Tensor plain = found::numbers({3, 3}), leaf = found::numbers({}).requires_grad_();
    return fuzz::Scene{{plain, leaf}, {leaf}};
  };
  expect_rounded_otherwise(given, 784266, [](Tensors v) {
    at::Tensor twice = at::addcdiv(v[1], at::pow(v[1], 2), v[1]);
    return Tensors{twice, at::addcdiv(v[0], twice, v[1])};
  });
}

/// What comes to a softmax in several orders must be added up before it goes through its derivative, which is
/// a difference of almost equal numbers where the softmax is close to 0 or 1.
TEST(FoundOrders, AThirdOrderThroughASoftmaxThatIsReturnedWithWhatItIsComputedFrom) {
  auto four = [] {
    fuzz::Scene scene;
    auto leaf = [&] { return scene.leaves.emplace_back(found::numbers({2}).requires_grad_()); };
    scene.pool.push_back(leaf());
    scene.pool.push_back(found::numbers({2}));
    scene.pool.push_back(leaf());
    scene.pool.push_back(leaf().clone());
    return scene;
  };
  expect_rounded_otherwise(four, 350112, [](Tensors v) {
    at::Tensor mixed = at::lerp(at::add(v[3], v[3]), v[0], v[0]);
    return Tensors{at::softmax(mixed, 0), mixed};
  });
  auto three = [] {
    fuzz::Scene scene;
    scene.pool.push_back(found::numbers({2}));
    scene.pool.push_back(scene.leaves.emplace_back(found::numbers({2, 2}).requires_grad_()));
    scene.pool.push_back(found::numbers({2, 2}));
    return scene;
  };
  expect_rounded_otherwise(three, 575072, [](Tensors v) {
    at::Tensor product = at::addmm(v[0], at::exp(v[1]), v[2]);
    return Tensors{product, at::softmax(product, 1)};
  });
  expect_rounded_otherwise([] { return found::one_leaf({2, 2}); }, 419848,
                           [](Tensors v) {
                             at::Tensor inverse = at::reciprocal(v[0]);
                             return Tensors{inverse, at::softmax(inverse, 1)};
                           });
}

/// The caller does not have the softmax, so what comes to it in several orders goes through its derivative
/// apart, and loses there what eager's sum does not.
TEST(FoundOrders, AThirdOrderThroughASoftmaxThatTheCallerDoesNotHave) {
  auto given = [] {
    at::Tensor factor = found::numbers({}), leaf = found::numbers({2, 2}).requires_grad_();
    return fuzz::Scene{{factor, leaf}, {leaf}};
  };
  expect_rounded_otherwise(given, 419848, [](Tensors v) {
    at::Tensor inverse = at::reciprocal(v[1]);
    return Tensors{inverse, at::mul(v[0], at::softmax(inverse, 1))};
  });
}

}  // namespace
}  // namespace tandem
