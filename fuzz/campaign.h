/// Many random programs, one after the other.
#pragma once

#include "fuzz/compare.h"

#include <atomic>
#include <map>

namespace tandem::fuzz {

/// A program that failed, as small as it could be made.
struct Failure {
  uint64_t number = 0;
  Mismatch mismatch;
  std::string source;  ///< C++
  size_t steps = 0;
};

struct Report {
  uint64_t programs = 0, compiled = 0, refused = 0, uncompiled = 0, differentiated = 0, twice = 0, loaded = 0;
  std::map<std::string, uint64_t> reasons;  ///< why programs ran uncompiled
  /// where less than everything was compared bit for bit, and in how many programs
  std::map<std::string, uint64_t> concessions;
  std::vector<Failure> failures;
};

struct Campaign {
  uint64_t seed = 0, first = 0, programs = 0;
  Setup setup = {};
  size_t most_failures = 10;  ///< ends there
  bool budgets = false;       ///< each program has a memory budget of its own

  /// What a program is compiled with.
  Setup setup_of(uint64_t number) const;
};

/// Runs in this process; a crash ends it.
Report run(const Campaign& campaign);

/// Who follows a campaign while it runs.
struct Audience {
  std::function<void(const Failure&)> on_failure = {};
  std::function<void(const Report&)> on_progress = {};
  const std::atomic<bool>* stop = nullptr;  ///< ends it early, with what is known by then
};

/// Runs in child processes, `jobs` at a time; a crash is a failure like others. This process must not have
/// used libtorch before: children of one that has threads may hang.
Report run_forked(const Campaign& campaign, size_t jobs, const Audience& audience = {});

void add(Report& to, const Report& part);

}  // namespace tandem::fuzz
