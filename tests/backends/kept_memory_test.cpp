// Memory that is kept between the runs of `fuse`.
#include <gtest/gtest.h>
#include <tandem/tandem.h>
#include <torch/torch.h>

#include <random>
#include <thread>

#include "backends/kept_memory.h"

namespace tandem {
namespace {

at::Tensor floats(int64_t count) { return make_from_kept({count}, {1}, at::kFloat); }

class KeptMemoryTest : public testing::Test {
 protected:
  void SetUp() override { release_kept_memory(); }
};

TEST_F(KeptMemoryTest, ATensorGetsTheMemoryOfADeadOne) {
  at::Tensor first = floats(100000);
  const void* memory = first.data_ptr();
  EXPECT_NE(floats(100000).data_ptr(), memory);
  first.reset();
  EXPECT_EQ(floats(100000).data_ptr(), memory);
}

TEST_F(KeptMemoryTest, SmallOnesGetPartsOfALargeOne) {
  at::Tensor large = floats(100000);
  const size_t held = held_bytes();
  const auto* begin = static_cast<char*>(large.data_ptr());
  large.reset();
  const at::Tensor a = floats(30000), b = floats(30000), c = floats(30000);
  for (const at::Tensor& part : {a, b, c}) {
    const auto* at = static_cast<char*>(part.data_ptr());
    EXPECT_TRUE(at >= begin && at < begin + held);
  }
  EXPECT_EQ(held_bytes(), held);
}

TEST_F(KeptMemoryTest, PartsThatDieAreOneAgain) {
  const size_t before = held_bytes();
  Tensors parts;
  for (int k = 0; k < 30; ++k) parts.push_back(floats(16000));
  const size_t held = held_bytes();
  // in any order
  std::shuffle(parts.begin(), parts.end(), std::mt19937(4));
  parts.clear();
  const at::Tensor whole = floats(int64_t(held - before) / 4);
  EXPECT_EQ(held_bytes(), held);
}

TEST_F(KeptMemoryTest, IsGivenBack) {
  floats(10000000).reset();
  EXPECT_GE(held_bytes(), 40000000u);
  const at::Tensor alive = floats(10000000);
  release_kept_memory();
  EXPECT_GE(held_bytes(), 40000000u);
  floats(10000000).reset();
  reset();
  EXPECT_LT(held_bytes(), 50000000u);
}

TEST_F(KeptMemoryTest, OtherSizesEveryTimeHoldNoMore) {
  for (int64_t k = 1; k < 200; ++k) floats(k * 20011).reset();
  EXPECT_LE(held_bytes(), size_t(200 * 20011 * 4) * 5 / 4 + (8 << 20));
}

TEST_F(KeptMemoryTest, TensorsAreLikeOthers) {
  at::Tensor tensor = make_from_kept({300, 200}, {1, 300}, at::kDouble);
  EXPECT_EQ(tensor.strides(), at::IntArrayRef({1, 300}));
  tensor.fill_(2);
  EXPECT_EQ(tensor.sum().item<double>(), 120000);
  tensor.resize_({400, 400});
  EXPECT_EQ(tensor.flatten()[59999].item<double>(), 2);
  EXPECT_EQ(tensor.requires_grad_().sum().requires_grad(), true);
}

TEST_F(KeptMemoryTest, NoneIsKeptWhereEachIsCounted) {
  const KeepNoMemory each_is_counted;
  const size_t before = held_bytes();
  floats(100000).reset();
  EXPECT_EQ(held_bytes(), before);
}

TEST_F(KeptMemoryTest, ThreadsShareIt) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 300; ++k) {
        const at::Tensor a = floats(5000 + 700 * ((k + t) % 9)).fill_(t), b = floats(40000).fill_(-t);
        wrong += a.ne(t).any().item<bool>() || b.ne(-t).any().item<bool>();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tandem
