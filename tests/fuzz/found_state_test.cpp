// Programs that random search found, which keep state, or call custom functions; compared as the search
// compares them.
#include "fuzz/found.h"
#include "fuzz/state.h"

namespace tandem::found_state {
namespace {

using found::expect_same_calls;
using found::numbers;
using found::one_leaf;
using fuzz::Scene;

Scene one_plain(at::IntArrayRef sizes) { return {{numbers(sizes)}, {}}; }

TEST(FoundState, AViewUnderNoGradOfWhatACustomFunctionMadeOfACapture) {
  expect_same_calls([] { return one_leaf({3}); }, 0,
                    [](Tensors v) {
                      at::Tensor y = fuzz::custom_scaled(2, v[0]), z;
                      {
                        at::NoGradGuard no_grad;
                        z = y.transpose(0, -1);
                      }
                      return Tensors{z};
                    },
                    false);
}

TEST(FoundState, AnInputStartsToRequireGradAndAStateIsKept) {
  expect_same_calls([] { return one_plain({2}); }, 1,
                    [](Tensors v) {
                      v[0].requires_grad_();
                      return Tensors{fuzz::carry(2, v[0])};
                    },
                    true);
  expect_same_calls([] { return one_plain({2}); }, 1,
                    [](Tensors v) {
                      fuzz::add_length_of_history(v[0]);
                      return Tensors{v[0].requires_grad_()};
                    },
                    true);
}

TEST(FoundState, ALeafThatTheFunctionMakesAndReturns) {
  expect_same_calls([] { return one_plain({2}); }, 1,
                    [](Tensors v) {
                      at::Tensor y = fuzz::add_noise_made_once(2, v[0]);
                      y.requires_grad_();
                      return Tensors{y};
                    },
                    true);
}

TEST(FoundState, AViewUnderNoGradOfALeafStartsToRequireGrad) {
  expect_same_calls([] { return one_leaf({}); }, 1,
                    [](Tensors v) {
                      at::Tensor view;
                      {
                        at::NoGradGuard no_grad;
                        view = v[0].squeeze();
                      }
                      fuzz::add_length_of_history(v[0]);
                      return Tensors{view.requires_grad_()};
                    },
                    true);
}

TEST(FoundState, AResultThatIsDetachedInPlaceAndReturnedTwice) {
  expect_same_calls([] { return one_leaf({2}); }, 1,
                    [](Tensors v) {
                      at::Tensor y = fuzz::carry(0, v[0]);
                      y.detach_();
                      return Tensors{y, y};
                    },
                    true);
  expect_same_calls([] { return one_leaf({2}); }, 1,
                    [](Tensors v) {
                      at::Tensor y = fuzz::carry(0, v[0]);
                      y.detach_();
                      return Tensors{y * 2, v[0] * y};
                    },
                    true);
}

TEST(FoundState, AnInputThatIsAViewOfAWrittenOne) {
  auto three = [] {
    Scene scene = one_leaf({2});
    scene.pool[0] = scene.leaves[0].clone();
    scene.pool.push_back(numbers({2}));
    scene.pool.push_back(scene.pool[1].reshape({-1}));
    return scene;
  };
  expect_same_calls(
      three, 3,
      [](Tensors v) {
        fuzz::carry(3, v[0]);
        v[1].mul_(v[0]);
        return Tensors{v[2]};
      },
      true);
}

TEST(FoundState, ACapturedTensorThatACustomFunctionSavedAndThatSharesWrittenMemory) {
  auto two = [] {
    Scene scene = one_leaf({});
    scene.pool.insert(scene.pool.begin(), scene.leaves[0].unsqueeze(0));
    return scene;
  };
  expect_same_calls(
      two, 1,
      [](Tensors v) {
        v[0].logical_and_(v[1]);
        return Tensors{fuzz::custom_product(v[1], v[1])};
      },
      false);
}

TEST(FoundState, ACapturedTensorWithAHistoryThatACustomFunctionIsGivenBeforeItIsWritten) {
  auto two = [] {
    Scene scene = one_leaf({});
    scene.pool = {scene.leaves[0].clone(), numbers({})};
    return scene;
  };
  expect_same_calls(
      two, 1,
      [](Tensors v) {
        v[1].mul_(fuzz::custom_product(v[0], v[1]));
        return Tensors{v[0]};
      },
      false);
}

TEST(FoundState, AnInputThatAutogradSavedBeforeItStartedToRequireGrad) {
  auto two = [] {
    Scene scene = one_leaf({});
    scene.pool = {numbers({}), scene.leaves[0].clone()};
    return scene;
  };
  expect_same_calls(
      two, 2,
      [](Tensors v) {
        v[1].mul_(v[0]);
        v[0].requires_grad_();
        return Tensors{v[0]};
      },
      false);
}

TEST(FoundState, ASecondOrderThroughAnInnerGradientOfZeros) {
  auto two = [] {
    Scene scene = one_leaf({});
    scene.pool.insert(scene.pool.begin(), numbers({}));
    return scene;
  };
  expect_same_calls(
      two, 2,
      [](Tensors v) {
        at::Tensor angle = at::atan2(v[1], v[0]);
        return Tensors{torch::autograd::grad({at::abs(angle).sum()}, {angle}, {}, true, true, true)[0]};
      },
      false);
}

TEST(FoundState, AViewThatAutogradForbidsToAskForItsHistory) {
  expect_same_calls([] { return one_leaf({}); }, 1,
                    [](Tensors v) {
                      at::Tensor view;
                      {
                        at::NoGradGuard no_grad;
                        view = v[0].view({-1}).mul_(3);
                      }
                      return Tensors{view, fuzz::add_length_of_history(v[0])};
                    },
                    true);
}

TEST(FoundState, AStateAndAWriteToADetachedTensor) {
  expect_same_calls([] { return one_leaf({}); }, 1,
                    [](Tensors v) {
                      at::Tensor sum = v[0].detach().add_(v[0]);
                      sum.reshape({-1});
                      return Tensors{fuzz::carry(1, v[0])};
                    },
                    true);
}

TEST(FoundState, AStateBesideAWriteToWhatIsMadeLikeAnInput) {
  auto one = [] {
    Scene scene = one_leaf({});
    scene.pool = {scene.leaves[0].clone()};
    return scene;
  };
  expect_same_calls(
      one, 1,
      [](Tensors v) {
        fuzz::add_noise_made_once(2, v[0]);
        return Tensors{at::zeros_like(v[0]).add_(v[0])};
      },
      true);
  expect_same_calls(
      one, 1,
      [](Tensors v) {
        at::Tensor y;
        {
          at::NoGradGuard no_grad;
          y = fuzz::add_noise_made_once(0, v[0]);
        }
        y.logical_and_(v[0]);
        return Tensors{y.mul_(v[0])};
      },
      true);
}

TEST(FoundState, ABaseOfAnArgumentThatStartsToRequireGrad) {
  auto two = [] {
    Scene scene = one_plain({2});
    scene.pool.insert(scene.pool.begin(), scene.pool[0].select(0, 0));
    return scene;
  };
  expect_same_calls(
      two, 1,
      [](Tensors v) {
        v[0].copy_(v[0]);
        return Tensors{v[1].requires_grad_()};
      },
      false);
}

TEST(FoundState, AnInnerGradientThroughAWriteToAView) {
  auto two = [] {
    Scene scene = one_leaf({3});
    scene.pool.push_back(numbers({3, 2}).transpose(0, -1));
    return scene;
  };
  expect_same_calls(
      two, 2,
      [](Tensors v) {
        v[1].lerp_(v[0], v[0].split(2, 0)[1]);
        return Tensors{torch::autograd::grad({v[1].sum()}, {v[0]}, {}, true, true, true)[0]};
      },
      false);
}

}  // namespace
}  // namespace tandem::found_state
