/// A part of a test that runs in a process of its own: one that has threads cannot safely be forked, nor
/// become another user.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

/// GoogleTest is silent in such a process, but for what is written to stderr.
inline void print_failures() {
  const testing::TestResult& result = *testing::UnitTest::GetInstance()->current_test_info()->result();
  for (int i = 0; i < result.total_part_count(); ++i) {
    const testing::TestPartResult& part = result.GetTestPartResult(i);
    if (part.failed())
      std::fprintf(stderr, "%s:%d: %s\n", part.file_name(), part.line_number(), part.message());
  }
}

/// The program is started anew for this statement alone, whose expectations count. A ScratchFolder that both
/// are to use has to be shared. It ends at once, because what a sanitizer does at an ordinary end is not
/// allowed to another user.
#define IN_A_NEW_PROCESS(statement)                       \
  do {                                                    \
    testing::FLAGS_gtest_death_test_style = "threadsafe"; \
    EXPECT_EXIT(                                          \
        {                                                 \
          statement;                                      \
          print_failures();                               \
          std::fflush(nullptr);                           \
          std::_Exit(testing::Test::HasFailure());        \
        },                                                \
        testing::ExitedWithCode(0), "");                  \
  } while (false)
