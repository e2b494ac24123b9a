#include "trace/location.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

namespace {

/// Files and lines are read from debug information with libdw; without it there are none to find.
class LocationWithLibdw : public testing::Test {
  void SetUp() override {
#ifndef TANDEM_HAVE_LIBDW
    GTEST_SKIP() << "built without libdw: no places in the source are found";
#endif
  }
};

__attribute__((noinline)) std::string asked_here(int& line) {
  line = __LINE__ + 1;
  std::string where = tandem::user_location();
  return where;
}

TEST_F(LocationWithLibdw, NamesFileAndLineOfTheCall) {
  int line = 0;
  std::string where = asked_here(line);
  EXPECT_TRUE(where.ends_with("tests/trace/location_test.cpp:" + std::to_string(line))) << where;
}

TEST_F(LocationWithLibdw, SkipsTheStandardLibraryBetween) {
  int line = 0;
  std::function<std::string()> function = [&] {
    line = __LINE__ + 1;
    std::string where = tandem::user_location();
    return where;
  };
  std::string where = function();
  EXPECT_TRUE(where.ends_with("tests/trace/location_test.cpp:" + std::to_string(line))) << where;
}

// What headers inline into the user's function must not hide it. With minimal debug information the line
// found is the user's nearest one before the call.
TEST_F(LocationWithLibdw, FindsTheUsersFunctionAroundAnInlinedCall) {
  int first = __LINE__;
  std::string where = std::invoke(&tandem::user_location);
  int last = __LINE__;
  ASSERT_NE(where.find("tests/trace/location_test.cpp:"), where.npos) << where;
  int line = std::stoi(where.substr(where.rfind(':') + 1));
  EXPECT_GE(line, first - 1);
  EXPECT_LT(line, last);
}

TEST_F(LocationWithLibdw, WorksOnSeveralThreadsAtOnce) {
  std::vector<std::string> found(8);
  std::vector<std::thread> threads;
  for (std::string& where : found)
    threads.emplace_back([&where] {
      int line = 0;
      for (int i = 0; i < 50; ++i) where = asked_here(line);
      if (!where.ends_with(":" + std::to_string(line))) where = "wrong: " + where;
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& where : found) EXPECT_NE(where.find("location_test.cpp:"), where.npos) << where;
}

TEST(Location, IsCheapAfterTheFirstTime) {
  int line = 0;
  asked_here(line);
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) asked_here(line);
  double milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() / 100;
  EXPECT_LT(milliseconds, 2.0);
}

}  // namespace
