#include "base/counters.h"

#include <tandem/compiled.h>
#include <tandem/error.h>

#include <gtest/gtest.h>

#include <thread>

namespace tandem {
namespace {

TEST(Counters, ShowEveryNameAlsoWhenNothingHappened) {
  reset_counters();
  std::map<std::string, uint64_t> shown = counters();
  for (const char* name : {"trace",
                           "joint_trace",
                           "partition",
                           "compile_forward",
                           "compile_backward",
                           "compile_inference",
                           "compile_higher_order",
                           "backward_variant",
                           "signature_evicted",
                           "cache_hit",
                           "cache_miss",
                           "cache_bypass",
                           "cache_unfit",
                           "cache_corrupt",
                           "cache_saved",
                           "cache_remote_hit",
                           "cache_remote_miss",
                           "cache_remote_error",
                           "cache_time_saved_us",
                           "cache_backward_us",
                           "kernel_compiled",
                           "kernel_reused",
                           "fallback_shapes"}) {
    ASSERT_TRUE(shown.contains(name)) << name;
    EXPECT_EQ(shown[name], 0u) << name;
  }
}

TEST(Counters, CountFromManyThreadsAndReset) {
  reset_counters();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int n = 0; n < 10000; ++n) count("trace", 2);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counters()["trace"], 80000u);
  EXPECT_EQ(counters()["partition"], 0u);
  reset_counters();
  EXPECT_EQ(counters()["trace"], 0u);
}

TEST(Counters, RefuseAnUnknownName) { EXPECT_THROW(count("tracing"), Error); }

}  // namespace
}  // namespace tandem
