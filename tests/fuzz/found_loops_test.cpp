// Programs that random search found with the backends `loops` and `fuse`, which round as they like.
#include "fuzz/found.h"

#include <numeric>

namespace tandem {
namespace {

constexpr uint64_t some_data = 225404;

void expect_alike_in_loops(const std::function<fuzz::Scene()>& given, const Callable& run,
                           uint64_t data = some_data, bool higher_orders = false) {
  auto scene = [&](uint64_t seed, const fuzz::Scene*) {
    torch::manual_seed(seed);
    return given();
  };
  std::vector<size_t> arguments(given().pool.size());
  std::iota(arguments.begin(), arguments.end(), 0);
  for (const char* backend : {"loops", "fuse"})
    found::expect_alike({scene, arguments, run, data, higher_orders},
                        {.backends = {backend}, .rounds = true});
}

fuzz::Scene leaf_and(at::IntArrayRef sizes, const Tensors& others = {}) {
  fuzz::Scene scene;
  scene.leaves = scene.pool = {torch::randn(sizes).requires_grad_()};
  scene.pool.insert(scene.pool.end(), others.begin(), others.end());
  return scene;
}

TEST(FoundLoops, AFoldOfSingleElements) {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{}, {1}, {1, 1}, {3, 1}}) {
    auto given = [&] { return leaf_and(sizes); };
    expect_alike_in_loops(given,
                          [](Tensors v) { return Tensors{at::sum(v[0]), at::mean(v[0], {-1}, true)}; });
    expect_alike_in_loops(given,
                          [](Tensors v) { return Tensors{at::amax(v[0], {-1}), at::var(v[0], false)}; });
  }
  expect_alike_in_loops([] { return leaf_and({1}); },
                        [](Tensors v) { return Tensors{at::layer_norm(v[0], {1})}; });
}

TEST(FoundLoops, AConditionOfFewerElementsThanWhatItChoosesFrom) {
  expect_alike_in_loops([] { return leaf_and({}, {torch::randn({2})}); },
                        [](Tensors v) { return Tensors{at::where(at::gt(v[0], 0), v[1], v[0])}; });
  expect_alike_in_loops([] { return leaf_and({2}); }, [](Tensors v) { return Tensors{at::pow(v[0], v[0])}; });
}

TEST(FoundLoops, AResultThatIsTheSameAlongWhatIsFolded) {
  expect_alike_in_loops([] { return leaf_and({2}); },
                        [](Tensors v) {
                          at::Tensor ones =
                              torch::autograd::grad({v[0].sum()}, {v[0]}, {}, true, false, true)[0];
                          return Tensors{at::pow(ones, 3)};
                        });
}

TEST(FoundLoops, ALossOfAMask) {
  for (auto loss : {at::mse_loss, at::l1_loss})
    expect_alike_in_loops(
        [] { return leaf_and({2, 3}); },
        [loss](Tensors v) { return Tensors{loss(v[0], at::gt(v[0], 0), at::Reduction::Mean)}; });
}

/// What is computed again in another kernel, instead of stored, is computed later than it stands.
TEST(FoundLoops, AnInputThatIsWrittenBehindWhatWouldBeComputedAgainOfIt) {
  expect_alike_in_loops([] { return leaf_and({1}); },
                        [](Tensors v) {
                          at::Tensor chosen = at::where(at::gt(v[0], 0), v[0], v[0]);
                          {
                            const at::NoGradGuard no_grad;
                            v[0].uniform_();
                          }
                          return Tensors{at::add(chosen, v[0]).add_(3)};
                        });
}

/// Eager's own result is zero but for what its kernel makes of numbers that are almost 1: no last bit of what
/// it is given shows how far off that is.
TEST(FoundLoops, ASecondDerivativeOfALogSoftmaxThatIsAlmostZero) {
  auto run = [](Tensors v) { return Tensors{at::log_softmax(at::add(v[0], v[1], 3), 0)}; };
  for (int64_t numbers_before : {0, 8}) {
    auto given = [=] {
      found::numbers({numbers_before});
      fuzz::Scene scene = found::one_leaf({2, 3});
      scene.pool.push_back(found::numbers({2, 3}));
      return scene;
    };
    expect_alike_in_loops(given, run, 81637, /*higher_orders=*/true);
  }
}

}  // namespace
}  // namespace tandem
