// Linked into every test program but those of the promise: calls that check it run the original, and what is
// to be tested here is compiled code. Run with TANDEM_WATCHED_CALLS=all they are tests of the watching:
// whatever a program does, no promise may seem to be broken.
#include <gtest/gtest.h>
#include <tandem/compiled.h>

#include <cstdlib>
#include <string_view>

namespace {

const bool runs_unwatched = setenv("TANDEM_WATCHED_CALLS", "off", /*overwrite=*/0) == 0;

class NoPromiseIsBroken final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { before_ = broken(); }
  void OnTestEnd(const testing::TestInfo&) override {
    EXPECT_LE(broken(), before_) << "a call seemed to do something else than its record";
  }
  static uint64_t broken() { return tandem::counters().at("promise_broken"); }

  uint64_t before_ = 0;
};

const bool expects_promises = [] {
  if (std::string_view(std::getenv("TANDEM_WATCHED_CALLS")) != "all") return false;
  testing::UnitTest::GetInstance()->listeners().Append(new NoPromiseIsBroken);
  return true;
}();

}  // namespace
