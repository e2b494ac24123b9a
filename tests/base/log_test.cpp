#include "base/log.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tandem {
namespace {

// The setting is read once a process, so each one is tried in a process of its own.
struct LogDeathTest : testing::Test {
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }

  [[noreturn]] static void speak(const char* setting) {
    setting ? setenv("TANDEM_LOGS", setting, 1) : unsetenv("TANDEM_LOGS");
    log("joint", "about the joint");
    log("cache", "about the cache");
    log_details("cache", "all about the cache");
    warn("take care");
    std::fputs(logs("joint") ? "<joint>" : "<silent>", stderr);
    std::exit(0);
  }
};

const auto ended = testing::ExitedWithCode(0);

TEST_F(LogDeathTest, OnlyWarningsUnasked) {
  EXPECT_EXIT(speak(nullptr), ended, "^[^\n]*take care\n<silent>$");
}
TEST_F(LogDeathTest, NamedTopics) {
  EXPECT_EXIT(speak("joint,graphs"), ended, "^[^\n]*joint: about the joint\n[^\n]*take care\n<joint>$");
}
TEST_F(LogDeathTest, SeveralTopics) {
  EXPECT_EXIT(speak("cache, joint"), ended, "about the joint\n.*about the cache\n");
}
TEST_F(LogDeathTest, DetailsAtLevelDebug) {
  EXPECT_EXIT(speak("cache,debug"), ended, "cache: about the cache\n.*all about the cache\n");
}
TEST_F(LogDeathTest, NoDetailsUnasked) {
  EXPECT_EXIT(speak("cache"), ended, "cache: about the cache\n[^\n]*take care\n");
}
TEST_F(LogDeathTest, EveryTopicAtALevel) {
  EXPECT_EXIT(speak("info"), ended, "about the joint\n.*about the cache\n");
}
TEST_F(LogDeathTest, LevelErrorHidesWarnings) { EXPECT_EXIT(speak("error"), ended, "^<silent>$"); }
TEST_F(LogDeathTest, UnknownWordsAreNamedOnce) {
  EXPECT_EXIT(speak("grahps,joint,verbose"), ended,
              "^[^\n]*means? nothing: grahps verbose; topics are all, cache,[^\n]*\n[^\n]*about the "
              "joint\n[^\n]*take care\n<joint>$");
}
TEST_F(LogDeathTest, LevelOffBeatsTopics) { EXPECT_EXIT(speak("joint,off"), ended, "^<silent>$"); }
TEST_F(LogDeathTest, LevelWarningBeatsTopics) {
  EXPECT_EXIT(speak("joint,warning"), ended, "^[^\n]*take care\n<silent>$");
}

}  // namespace
}  // namespace tandem
