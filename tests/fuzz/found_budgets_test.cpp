// Programs that random search found at memory budgets below 1: what is computed again in the backward must
// not be computed from a tensor that the caller got back, and may have written.
#include "fuzz/found.h"

namespace tandem {
namespace {

void expect_alike_at_all_budgets(const std::function<fuzz::Scene()>& given, uint64_t data,
                                 std::vector<size_t> arguments, const std::function<Tensors(Tensors)>& run) {
  auto scene = [&](uint64_t seed, const fuzz::Scene*) {
    torch::manual_seed(seed);
    return given();
  };
  for (int tenths = 0; tenths <= 10; ++tenths) {
    fuzz::Setup setup;
    setup.options.partitioner = "min_cut";
    setup.options.memory_budget = tenths / 10.0;
    found::expect_alike({scene, arguments, run, data}, setup);
  }
}

at::Tensor leaf_of(fuzz::Scene& scene, at::IntArrayRef sizes) {
  scene.leaves.push_back(found::numbers(sizes).requires_grad_());
  return scene.leaves.back();
}

TEST(FoundBudgets, AConditionOfAnInputThatIsReturned) {
  auto given = [] {
    fuzz::Scene scene;
    for (int i = 0; i < 2; ++i) scene.pool.push_back(leaf_of(scene, {}).clone());
    return scene;
  };
  expect_alike_at_all_budgets(given, 185179, {0, 1}, [](Tensors v) {
    at::Tensor chosen = at::where(at::gt(v[0], 0), v[1], v[0]);
    return Tensors{at::pow(v[0], v[0]), v[0], chosen};
  });
}

TEST(FoundBudgets, ASumWithAnInputThatIsReturned) {
  auto given = [] {
    fuzz::Scene scene;
    scene.pool = {leaf_of(scene, {2, 1}), found::numbers({2, 2})};
    return scene;
  };
  expect_alike_at_all_budgets(given, 834354, {0, 1}, [](Tensors v) {
    at::Tensor sum = at::index_add(v[1], 1, at::arange(v[0].size(1)), v[0]);
    at::Tensor product = at::matmul(sum, v[0]);
    return Tensors{at::mul(v[0], v[1]), product, product, v[1]};
  });
}

/// A list operator runs again for the sake of one tensor that it wrote, while another one is kept.
TEST(FoundBudgets, AListOperatorOfWhichOneResultIsKept) {
  auto given = [] {
    fuzz::Scene scene;
    scene.pool = {scene.leaves.emplace_back(torch::randn({1, 3}, at::kFloat).requires_grad_())};
    return scene;
  };
  expect_alike_at_all_budgets(given, 212435, {0}, [](Tensors v) {
    at::Tensor wide = v[0].to(at::kDouble), scaled = at::mul(v[0], 1.5), turned = wide.permute({1, 0});
    at::_foreach_add_({scaled, wide}, {wide, v[0]});
    Tensors sums = at::_foreach_addcmul({turned, scaled}, {scaled, v[0]}, {v[0], turned}, 1);
    return Tensors{at::cat({sums.at(1), sums.at(0)}, 0)};
  });
}

}  // namespace
}  // namespace tandem
