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

}  // namespace
}  // namespace tandem
