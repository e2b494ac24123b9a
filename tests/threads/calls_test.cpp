// One compiled object, or several, used by many threads at once.
#include "threads/threads.h"

namespace tandem {
namespace {

using test::leaf;
using test::on_all_threads;
using test::right;
using test::same_all;
using test::same_values;
using test::wave;

TEST(Threads, OneObjectOneSignature) {
  Compiled fast(wave, {});
  uint64_t traces = test::counter("trace");
  std::atomic<int> wrong = 0;
  on_all_threads([&](int) {
    for (int i = 0; i < 20; ++i) wrong += !right(fast, wave, 5);
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(test::counter("trace"), traces + 1);
}

TEST(Threads, OneObjectManySignaturesAndEvictions) {
  for (size_t most : {64, 3}) {
    Compiled fast(wave, {.max_signatures = most});
    std::atomic<int> wrong = 0;
    testing::internal::CaptureStderr();
    on_all_threads([&](int t) {
      for (int i = 0; i < 12; ++i) wrong += !right(fast, wave, 1 + (t + i) % 6);
    });
    testing::internal::GetCapturedStderr();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Threads, ManyObjectsCompiledAtOnce) {
  std::atomic<int> wrong = 0;
  on_all_threads([&](int t) {
    for (int i = 0; i < 4; ++i) {
      Callable fn = [t](const Tensors& in) { return Tensors{(in[0] * double(t)).tanh() + in[1]}; };
      wrong += !right(Compiled(fn, {}), fn, 4);
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, GradModeBelongsToTheThread) {
  Compiled fast(wave, {});
  std::atomic<int> wrong = 0;
  at::Tensor a = leaf({3}), b = leaf({3});
  on_all_threads([&](int t) {
    torch::AutoGradMode mode(t % 2 == 0);
    for (int i = 0; i < 10; ++i) wrong += fast({a, b})[0].requires_grad() != (t % 2 == 0);
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, ForwardOnOneBackwardOnAnother) {
  Compiled fast(wave, {});
  at::Tensor a = leaf({3}), b = leaf({3});
  at::Tensor got = fast({a, b})[0], want = wave({a, b})[0];
  Tensors gradients;
  std::thread([&] { gradients = torch::autograd::grad({got.sum()}, {a, b}); }).join();
  Tensors wanted = torch::autograd::grad({want.sum()}, {a, b});
  EXPECT_TRUE(same_values(gradients[0], wanted[0]) && same_values(gradients[1], wanted[1]));
}

TEST(Threads, BackwardsOfOneCallAtOnce) {
  Compiled fast(wave, {});
  at::Tensor a = leaf({3}), b = leaf({3}), got = fast({a, b})[0];
  at::Tensor want = torch::autograd::grad({wave({a, b})[0].sum()}, {a})[0];
  std::atomic<int> wrong = 0;
  on_all_threads([&](int t) {
    at::Tensor loss = t % 2 ? got.sum() : (got * torch::ones(3)).sum();
    wrong += !same_values(torch::autograd::grad({loss}, {a}, {}, /*retain_graph=*/true)[0], want);
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, ParametersInCommon) {
  torch::nn::Linear model(4, 4);
  Compiled fast([&](const Tensors& in) { return Tensors{model(in[0]).relu()}; }, {});
  std::atomic<int> wrong = 0;
  on_all_threads([&](int) {
    for (int i = 0; i < 10; ++i) {
      at::Tensor x = torch::randn({2, 4});
      at::Tensor got = torch::autograd::grad({fast({x})[0].sum()}, {model->weight})[0];
      wrong += !same_values(got, torch::autograd::grad({model(x).relu().sum()}, {model->weight})[0]);
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, ResetWhileOthersCall) {
  Compiled fast(wave, {});
  std::atomic<int> wrong = 0;
  on_all_threads([&](int t) {
    for (int i = 0; i < 8; ++i)
      if (t == 0)
        reset();
      else
        wrong += !right(fast, wave, 3);
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, OnesOwnThreadInsideTheFunctionIsNotRecorded) {
  Compiled fast(
      [](const Tensors& in) {
        at::Tensor table;
        std::thread([&] { table = torch::arange(3.f).add(1); }).join();
        return Tensors{in[0] * table};
      },
      {});
  at::Tensor a = leaf({3});
  EXPECT_TRUE(same_values(fast({a})[0], a * torch::tensor({1.f, 2.f, 3.f})));
}

}  // namespace
}  // namespace tandem
