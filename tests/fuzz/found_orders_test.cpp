// Programs that random search found, of which a gradient of a gradient is nothing but what rounding leaves of
// terms that cancel each other.
#include "fuzz/compare.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

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
  for (const char* partitioner : {"default", "recompute_all", "save_all"}) {
    fuzz::Setup setup;
    setup.options.partitioner = partitioner;
    const fuzz::Outcome outcome = fuzz::compare({scene, arguments, run, data, /*higher_orders=*/true}, setup);
    EXPECT_FALSE(outcome.mismatch) << outcome.mismatch->kind << ", " << outcome.mismatch->detail;
    EXPECT_TRUE(outcome.concessions.contains("higher orders are rounded otherwise")) << partitioner;
  }
}

TEST(FoundOrders, AThirdOrderThatIsZeroButForRounding) {
  auto given = [] {
    at::Tensor leaf = torch::randn({3}, at::kDouble).requires_grad_();
    return fuzz::Scene{{leaf}, {leaf}};
  };
  expect_rounded_otherwise(given, 521980, [](Tensors v) {
    at::Tensor one = at::div(v[0], v[0]), product = at::mul(at::fmod(one, v[0]), one);
    return Tensors{product, product, one};
  });
}

TEST(FoundOrders, ASecondOrderThatIsZeroButForRounding) {
  auto given = [] {
    at::Tensor plain = torch::randn({3, 3}, at::kDouble),
               leaf = torch::randn({}, at::kDouble).requires_grad_();
    return fuzz::Scene{{plain, leaf}, {leaf}};
  };
  expect_rounded_otherwise(given, 784266, [](Tensors v) {
    at::Tensor twice = at::addcdiv(v[1], at::pow(v[1], 2), v[1]);
    return Tensors{twice, at::addcdiv(v[0], twice, v[1])};
  });
}

}  // namespace
}  // namespace tandem
