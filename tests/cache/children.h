/// Tests of this program that its usual run leaves out, each in a process of its own that prints what it
/// found.
#pragma once

#include <unistd.h>

#include <array>
#include <cstdio>
#include <regex>
#include <string>

namespace tandem::test {

/// A test `DISABLED_Child.<test>` that is running.
using Child = FILE*;

/// `program` is this one, or a copy of it.
inline Child start_child(const std::string& test, const std::string& environment = "",
                         const std::string& folder = ".", std::string program = "") {
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) return nullptr;
  if (program.empty()) program = self;
  return popen(("cd " + folder + " && env " + environment + " '" + program +
                "' --gtest_also_run_disabled_tests --gtest_filter=DISABLED_Child." + test)
                   .c_str(),
               "r");
}

/// What it printed with `print_to_parent`, once it is at its end; all of its output, with a remark, where its
/// expectations failed.
inline std::string printed_by(Child child) {
  if (!child) return "did not start";
  std::string output;
  std::array<char, 4096> some;
  while (size_t count = fread(some.data(), 1, some.size(), child)) output.append(some.data(), count);
  if (pclose(child) != 0) return "failed: " + output;
  std::smatch found;
  return std::regex_search(output, found, std::regex("<<<([^]*)>>>")) ? found[1].str()
                                                                      : "printed nothing: " + output;
}

inline std::string printed_by_child(const std::string& test, const std::string& environment = "",
                                    const std::string& folder = ".") {
  return printed_by(start_child(test, environment, folder));
}

inline void print_to_parent(const std::string& text) { std::printf("<<<%s>>>\n", text.c_str()); }

}  // namespace tandem::test
