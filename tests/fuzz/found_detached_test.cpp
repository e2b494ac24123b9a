// Programs that random search found, which keep state and detach tensors in place, or are given tensors of
// which autograd knows more than their fakes.
#include "fuzz/found.h"
#include "fuzz/state.h"

namespace tandem {
namespace {

using found::expect_same_calls;
using found::numbers;
using fuzz::Scene;

Scene a_computed_one_and_a_leaf(at::IntArrayRef sizes) {
  Scene scene = found::one_leaf(sizes);
  scene.pool = {numbers(sizes).requires_grad_()};
  scene.leaves.insert(scene.leaves.begin(), scene.pool[0]);
  scene.pool = {scene.leaves[0].clone(), scene.leaves[1]};
  return scene;
}

/// The second is a view of the first, which requires no grad.
Scene a_plain_one_its_view_and_a_leaf() {
  Scene scene = found::one_leaf({2});
  const at::Tensor plain = numbers({2});
  scene.pool = {plain, plain.alias(), scene.leaves[0]};
  return scene;
}

TEST(FoundDetached, AnInputThatAWriteGivesAHistoryAgain) {
  auto given = [] { return a_computed_one_and_a_leaf({2}); };
  expect_same_calls(
      given, 2,
      [](Tensors v) {
        v[0].detach_();
        v[0].mul_(v[1]);
        return Tensors{fuzz::add_noise_made_once(2, v[0])};
      },
      true);
  expect_same_calls(
      given, 2,
      [](Tensors v) {
        v[0].detach_();
        v[0].mul_(v[1]);
        return Tensors{fuzz::carry(3, v[0])};
      },
      true);
}

TEST(FoundDetached, AnInputThatAListOperatorWritesTwice) {
  expect_same_calls([] { return a_computed_one_and_a_leaf({2}); }, 2,
                    [](Tensors v) {
                      at::Tensor noisy = fuzz::add_noise_made_once(2, v[1]);
                      v[0].detach_();
                      at::_foreach_addcmul_({v[0], v[0]}, {v[0], v[1]}, {v[1], v[0]}, 1);
                      return Tensors{noisy};
                    },
                    true);
}

TEST(FoundDetached, APlainInputThatAWriteGaveAHistory) {
  auto given = [] {
    Scene scene = found::one_leaf({});
    scene.pool = {numbers({}), scene.leaves[0].clone()};
    return scene;
  };
  expect_same_calls(
      given, 2,
      [](Tensors v) {
        v[0].copy_(v[1]);
        v[0].detach_();
        fuzz::carry(3, v[0]);
        return Tensors{v[0]};
      },
      true);
}

TEST(FoundDetached, AnInputThatIsWrittenByWhatStartsToRequireGrad) {
  auto given = [] {
    Scene scene = found::one_leaf({});
    scene.pool = {numbers({}), numbers({}), scene.leaves[0].clone()};
    return scene;
  };
  expect_same_calls(
      given, 3,
      [](Tensors v) {
        at::Tensor sum = fuzz::carry(3, v[0]), detached = v[2].detach_();
        v[1].add_(sum);
        v[1].requires_grad_();
        v[2].copy_(v[1]);
        v[2].bernoulli_(0.5);
        return Tensors{detached};
      },
      true);
}

TEST(FoundDetached, AResultOfWhichAViewIsReturned) {
  expect_same_calls([] { return found::one_leaf({1, 1}); }, 1,
                    [](Tensors v) {
                      at::Tensor sum = fuzz::carry(0, v[0]), view = sum.transpose(1, -1);
                      return Tensors{sum.detach_(), view, v[0]};
                    },
                    true);
}

TEST(FoundDetached, AStateBesideAWriteToAViewOfAnInput) {
  expect_same_calls(
      a_plain_one_its_view_and_a_leaf, 3,
      [](Tensors v) {
        v[1].copy_(v[2]);
        return Tensors{fuzz::add_noise_made_once(1, v[0])};
      },
      true);
  expect_same_calls(
      a_plain_one_its_view_and_a_leaf, 3,
      [](Tensors v) {
        v[1].mul_(v[2]);
        return Tensors{fuzz::add_length_of_history(v[0])};
      },
      true);
}

}  // namespace
}  // namespace tandem
