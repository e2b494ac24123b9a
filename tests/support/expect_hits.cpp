// With TANDEM_EXPECT_HITS set this run is the second of two on one cache folder: whatever the first one saved
// has to be loaded.
#include <gtest/gtest.h>
#include <tandem/compiled.h>

#include <cstdlib>

namespace {

/// A call that is compiled here although it can be cached is saved, so nothing may be. Training calls that
/// nobody differentiates are no entries in either run.
class NothingIsSavedAgain final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { before_ = tandem::counters(); }
  void OnTestEnd(const testing::TestInfo&) override {
    auto now = tandem::counters();
    for (const char* what : {"cache_saved", "cache_unfit", "cache_corrupt"})
      EXPECT_EQ(now.at(what), before_.at(what)) << what;
  }

  std::map<std::string, uint64_t> before_;
};

class SomethingIsLoaded final : public testing::Environment {
  void TearDown() override {
    EXPECT_GT(tandem::counters().at("cache_hit"), 0u) << "nothing came from the cache";
  }
};

const bool listens = [] {
  if (!std::getenv("TANDEM_EXPECT_HITS")) return false;
  testing::UnitTest::GetInstance()->listeners().Append(new NothingIsSavedAgain);
  testing::AddGlobalTestEnvironment(new SomethingIsLoaded);
  return true;
}();

}  // namespace
