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

/// What makes a function run as it is, and was conceded: the state was kept by the trace and by the function.
void expect_kept_once(const std::function<Scene()>& given, size_t passed,
                      const std::function<Tensors(Tensors)>& run) {
  for (uint64_t data : {1, 2, 3}) {
    auto scene = [&](uint64_t seed, const Scene*) {
      torch::manual_seed(seed);
      return given();
    };
    std::vector<size_t> arguments;
    for (size_t i = 0; i < passed; ++i) arguments.push_back(i);
    fuzz::Subject subject{scene, arguments, run, data, /*higher_orders=*/false};
    subject.keeps_state = true;
    EXPECT_FALSE(
        found::expect_alike(subject).concessions.contains("state is kept twice where a trace is refused"));
  }
}

TEST(FoundDetached, AnInputThatIsDetachedIsLeftSo) {
  expect_kept_once([] { return a_computed_one_and_a_leaf({2}); }, 2,
                   [](Tensors v) {
                     at::Tensor sum = fuzz::carry(1, v[0]);
                     v[0].detach_();
                     return Tensors{sum * v[0]};
                   });
  expect_kept_once([] { return a_computed_one_and_a_leaf({2}); }, 2,
                   [](Tensors v) {
                     at::Tensor sum = fuzz::add_length_of_history(v[0]);
                     v[0].detach_();
                     v[0].mul_(2);
                     v[0].requires_grad_();
                     return Tensors{sum * v[0]};
                   });
  expect_kept_once([] { return found::one_leaf({2}); }, 1,
                   [](Tensors v) {
                     at::Tensor sum = fuzz::add_noise_made_once(1, v[0]);
                     v[0].requires_grad_(false);
                     return Tensors{sum * v[0]};
                   });
}

TEST(FoundDetached, AStateBesideACallThatIsNotCompiled) {
  expect_kept_once([] { return Scene{{numbers({2}), numbers({3, 2})}, {}}; }, 2,
                   [](Tensors v) {
                     at::Tensor sum = fuzz::carry(1, v[0]);
                     at::add_out(v[0], v[1], v[1]);
                     return Tensors{sum};
                   });
  expect_kept_once([] { return Scene{{numbers({2, 2})}, {}}; }, 1,
                   [](Tensors v) {
                     at::Tensor noisy = fuzz::add_noise_made_once(1, v[0]),
                                sum = fuzz::add_length_of_history(noisy);
                     at::Tensor made = v[0] * 1, row = made.select(0, 0);
                     at::add_out(made, v[0].select(0, 0), row);
                     return Tensors{sum, made, row};
                   });
  expect_kept_once([] { return found::one_leaf({2, 3}); }, 1,
                   [](Tensors v) {
                     at::Tensor sum = fuzz::carry(1, v[0]);
                     {
                       at::NoGradGuard no_grad;
                       sum.t_();
                     }
                     return Tensors{sum};
                   });
  expect_kept_once(
      [] {
        Scene scene = found::one_leaf({2});
        const at::Tensor whole = numbers({3, 2});
        scene.pool = {whole, whole.select(0, 1), scene.leaves[0]};
        return scene;
      },
      3,
      [](Tensors v) {
        at::Tensor sum = fuzz::carry(1, v[2]);
        at::_foreach_mul_({v[1]}, {v[2]});
        return Tensors{sum, v[0] * 2};
      });
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
