/// Fingerprints of small functions, and processes that print theirs.
#pragma once

#include <gtest/gtest.h>
#include <tandem/tandem.h>
#include <torch/torch.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <regex>

#include "runtime/fingerprint.h"

namespace tandem::test {

using Function = std::function<Tensors(const Tensors&)>;

inline Traced traced(const Function& function, const Tensors& inputs, bool record_locations = false) {
  return trace_forward([&](const Tensors& fakes) { return detail::Returned{function(fakes), nullptr}; }, inputs, record_locations);
}

inline Fingerprint fingerprint_of(const Function& function, const Tensors& inputs, const Options& options = {}) {
  const Traced trace = traced(function, inputs, options.record_locations);
  return fingerprint(trace, plan_calls(trace, {}, options.keep_input_mutations), options);
}

inline std::string key_of(const Function& function, const Tensors& inputs, const Options& options = {}) { return fingerprint_of(function, inputs, options).key; }

inline const cache::Component& component(const Fingerprint& print, const std::string& name) {
  for (const cache::Component& one : print.components)
    if (one.name == name) return one;
  throw std::out_of_range("no component " + name);
}

/// Names of the components that differ.
inline std::vector<std::string> differing(const Fingerprint& a, const Fingerprint& b) {
  std::vector<std::string> names;
  for (const cache::Component& one : a.components)
    if (component(b, one.name).hash != one.hash) names.push_back(one.name);
  return names;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// What one test of this program, left out of its usual run, prints between marks in a process of its own.
inline std::string printed_by_child(const std::string& test, const std::string& environment = "", const std::string& folder = ".") {
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) return {};
  const std::string command = "cd " + folder + " && env " + environment + " '" + self + "' --gtest_also_run_disabled_tests --gtest_filter=DISABLED_Child." + test;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return {};
  std::string output;
  std::array<char, 4096> some;
  while (size_t count = fread(some.data(), 1, some.size(), pipe)) output.append(some.data(), count);
  if (pclose(pipe) != 0) return "failed: " + output;
  std::smatch found;
  return std::regex_search(output, found, std::regex("<<<([^]*)>>>")) ? found[1].str() : "printed nothing: " + output;
}
inline void print_to_parent(const std::string& text) { std::printf("<<<%s>>>\n", text.c_str()); }

}  // namespace tandem::test
