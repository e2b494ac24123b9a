// Programs that random search found, in which autograd's history of a tensor is not what the operators alone
// say: tensors that are detached or start to require grad behind others, list operators and custom functions.
// On the data for which the search found them, and on others, with each partitioner.
#include "fuzz/found.h"
#include "fuzz/state.h"

#include <numeric>

namespace tandem::found_histories {
namespace {

using fuzz::Scene;
using Given = std::function<Scene()>;

at::Tensor plain(at::IntArrayRef sizes, at::ScalarType dtype = at::kDouble) {
  return torch::randn(sizes, dtype);
}
at::Tensor leaf_of(Scene& scene, at::IntArrayRef sizes, at::ScalarType dtype = at::kDouble) {
  return scene.leaves.emplace_back(plain(sizes, dtype).requires_grad_());
}

std::vector<fuzz::Outcome> expect_same(const Given& given, std::vector<uint64_t> found_on,
                                       const std::function<Tensors(Tensors)>& run,
                                       bool higher_orders = false) {
  auto scene = [&](uint64_t seed, const Scene*) {
    torch::manual_seed(seed);
    return given();
  };
  std::vector<size_t> arguments(given().pool.size());
  std::iota(arguments.begin(), arguments.end(), 0);
  for (uint64_t data = 1; data <= 4; ++data) found_on.push_back(data);
  std::vector<fuzz::Outcome> outcomes;
  for (const char* partitioner : {"default", "min_cut", "recompute_all", "save_all"}) {
    fuzz::Setup setup;
    setup.options.partitioner = partitioner;
    for (uint64_t data : found_on)
      outcomes.push_back(found::expect_alike({scene, arguments, run, data, higher_orders}, setup));
  }
  return outcomes;
}

/// Autograd keeps the tensor itself, so a second derivative sees none of the history that it had.
TEST(FoundHistories, ATensorThatAutogradSavedIsDetachedInPlace) {
  auto one = [] {
    Scene scene;
    scene.pool.push_back(leaf_of(scene, {}).clone());
    return scene;
  };
  expect_same(
      one, {731235},
      [](Tensors v) {
        at::Tensor sum = at::_foreach_add({v[0], v[0]}, {v[0], v[0]}).at(1),
                   product = fuzz::custom_product(sum, v[0]);
        sum.detach_();
        return Tensors{product};
      },
      /*higher_orders=*/true);
  expect_same(
      one, {},
      [](Tensors v) {
        at::Tensor twice = v[0] * 2, product = twice * v[0];
        twice.detach_();
        return Tensors{product, twice};
      },
      /*higher_orders=*/true);
}

/// It is a view like any other, and gets a history when its base is written.
TEST(FoundHistories, AViewIsMadeBeforeItsBaseStartsToRequireGrad) {
  expect_same([] { return Scene{{plain({1, 1}, at::kFloat)}, {}}; }, {659280},
              [](Tensors v) {
                at::Tensor view = v[0].slice(1, 1, 3), detached = v[0].detach();
                v[0].requires_grad_();
                return Tensors{view, detached};
              });
  expect_same([] { return Scene{{plain({3, 2})}, {}}; }, {617719},
              [](Tensors v) {
                at::Tensor view = v[0].narrow(0, 0, 1).t(), detached = v[0].detach();
                v[0].requires_grad_();
                return Tensors{detached, view};
              });
  expect_same([] { return Scene{{plain({3, 2})}, {}}; }, {},
              [](Tensors v) {
                Tensors views = v[0].unbind(0);
                v[0].requires_grad_();
                return Tensors{views[1], v[0].detach(), views[0]};
              });
}

/// The list operator is one node, and asks the custom function for a gradient of zeros.
TEST(FoundHistories, ACustomFunctionBehindAnotherResultOfAListOperator) {
  auto one = [] {
    Scene scene;
    scene.pool.push_back(leaf_of(scene, {}, at::kFloat).clone());
    return scene;
  };
  expect_same(one, {328871}, [](Tensors v) {
    at::Tensor detached = v[0].detach(), scaled = fuzz::custom_scaled(1, v[0]);
    return Tensors{at::_foreach_mul({scaled, detached}, 0).at(1), scaled};
  });
  auto two = [] {
    Scene scene;
    scene.pool.push_back(leaf_of(scene, {}));
    scene.pool.push_back(leaf_of(scene, {}));
    return scene;
  };
  expect_same(two, {607083}, [](Tensors v) {
    at::Tensor scaled = fuzz::custom_scaled(1, v[0]);
    return Tensors{at::_foreach_mul({v[1], scaled}, 3).at(0), scaled};
  });
  expect_same(
      two, {557831},
      [](Tensors v) {
        at::Tensor sum;
        {
          at::NoGradGuard no_grad;
          sum = at::add(v[1], v[0], 3);
        }
        at::Tensor scaled = fuzz::custom_scaled(1, v[0]);
        return Tensors{scaled, at::_foreach_sin({scaled, sum}).at(1)};
      },
      /*higher_orders=*/true);
  expect_same(
      two, {557831},
      [](Tensors v) {
        at::Tensor sum;
        {
          at::NoGradGuard no_grad;
          sum = at::add(v[1], v[0], 3);
        }
        at::Tensor turned = fuzz::custom_scaled(1, v[0]).t();
        return Tensors{turned, at::_foreach_sin({turned, sum}).at(1)};
      },
      /*higher_orders=*/true);
}

/// Of several custom functions, those behind the list operator alone.
TEST(FoundHistories, SomeOfSeveralCustomFunctionsBehindAListOperator) {
  auto three = [] {
    Scene scene;
    for (int i = 0; i < 3; ++i) scene.pool.push_back(leaf_of(scene, {2}).clone());
    return scene;
  };
  expect_same(
      three, {},
      [](Tensors v) {
        at::Tensor once = fuzz::custom_scaled(2, v[0]), twice = fuzz::custom_scaled(3, v[1]);
        return Tensors{at::_foreach_mul({v[2], once}, 3).at(0), once, twice, once * twice};
      },
      /*higher_orders=*/true);
  expect_same(
      three, {},
      [](Tensors v) {
        at::Tensor once = fuzz::custom_scaled(2, v[0]), twice = fuzz::custom_scaled(3, v[1]);
        Tensors products = at::_foreach_mul({v[2], once, twice}, 3);
        return Tensors{products[0], once, twice, products[2]};
      },
      /*higher_orders=*/true);
}

/// Eager looks at the history that the input had before its view was written, which is none, and refuses.
TEST(FoundHistories, AnInputIsWrittenBehindAViewOfItThatWasGivenAHistory) {
  auto three = [] {
    Scene scene;
    scene.pool.push_back(leaf_of(scene, {}, at::kFloat));
    scene.pool.push_back(plain({1}));
    scene.pool.push_back(plain({1}).expand({1}));
    return scene;
  };
  expect_same(three, {37173}, [](Tensors v) {
    at::Tensor view = v[2].view({-1}).mul_(3);
    view.addcmul_(v[0], v[0]);
    v[2].index_add_(0, at::arange(v[1].size(0)), v[1]);
    return Tensors{v[2]};
  });
}

TEST(FoundHistories, ADetachedInputIsWrittenWithAHistory) {
  auto two = [] {
    Scene scene;
    scene.pool.push_back(leaf_of(scene, {}, at::kFloat));
    scene.pool.push_back(leaf_of(scene, {}, at::kFloat).clone());
    return scene;
  };
  expect_same(two, {871837}, [](Tensors v) {
    at::Tensor detached = v[1].detach();
    detached.unsqueeze_(0).slice(0, 1).mul_(2).add_(v[0]);
    return Tensors{detached};
  });
}

TEST(FoundHistories, AnEmptyInputIsCopiedIntoAndWhatWasCopiedIsWritten) {
  auto three = [] {
    Scene scene;
    scene.pool.push_back(leaf_of(scene, {0, 1}).clone());
    scene.pool.push_back(leaf_of(scene, {0, 1}).clone());
    scene.pool.push_back(scene.pool[0].slice(0, 1));
    return scene;
  };
  expect_same(
      three, {67818},
      [](Tensors v) {
        v[1].copy_(v[2]);
        at::Tensor cosine = at::cos(v[1]);
        v[0].relu_();
        return Tensors{cosine};
      },
      /*higher_orders=*/true);
}

TEST(FoundHistories, AViewOfAReturnedViewGetsOtherSizesInPlace) {
  auto one = [] {
    Scene scene;
    scene.pool.push_back(leaf_of(scene, {2}, at::kFloat));
    return scene;
  };
  expect_same(one, {368151}, [](Tensors v) {
    at::Tensor view = at::dropout(v[0], 0.5, true).unsqueeze(0), part = view.slice(0, 0, 3);
    part.t_();
    return Tensors{part, view};
  });
}

/// The gradient of the sine, which eager's kernel refuses, is one that leads to no element.
TEST(FoundHistories, AnErrorInAGradientWithoutElements) {
  auto two = [] {
    Scene scene;
    scene.pool.push_back(plain({0, 2}, at::kFloat));
    scene.pool.push_back(leaf_of(scene, {0, 1}, at::kFloat));
    return scene;
  };
  const auto outcomes = expect_same(two, {147182}, [](Tensors v) {
    at::Tensor sine = at::add(v[0], v[1]).expand_as(v[0]).sin_();
    return Tensors{at::index_add(v[1], 1, at::arange(sine.size(1)), sine)};
  });
  EXPECT_TRUE(outcomes[0].concessions.contains("eager's error lies in gradients without elements"));
}

}  // namespace
}  // namespace tandem::found_histories
