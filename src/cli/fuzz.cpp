#include "bench.h"
#include "commands.h"
#include "process.h"
#include "table.h"

#include "fuzz/campaign.h"
#include "fuzz/generate.h"

#include <CLI/CLI.hpp>

#include <tandem/error.h>
#include <tandem/partition.h>

#include <unistd.h>

#include <csignal>
#include <iostream>
#include <memory>

#include "cache/settings.h"

namespace tandem::cli {

namespace {

struct FuzzOptions {
  uint64_t programs = 10000, seed = 0, first = 0;
  size_t jobs = 1, most_failures = 10;
  std::string partitioner = Options{}.partitioner, backend = {};
  bool json = false, cache = false, watched = false, budgets = false;
};

std::atomic<bool> stopped = false;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Json json_of(const fuzz::Report& report, const FuzzOptions& options, double seconds) {
  Json failures = Json::array();
  for (const fuzz::Failure& f : report.failures)
    failures.push_back({{"program", f.number},
                        {"kind", f.mismatch.kind},
                        {"detail", f.mismatch.detail},
                        {"setup", f.mismatch.setup},
                        {"source", f.source}});
  return {{"seed", options.seed},
          {"first", options.first},
          {"programs", report.programs},
          {"compiled", report.compiled},
          {"refused_by_eager", report.refused},
          {"uncompiled", report.uncompiled},
          {"uncompiled_reasons", Json(report.reasons)},
          {"differentiated", report.differentiated},
          {"differentiated_twice", report.twice},
          {"loaded", report.loaded},
          {"concessions", Json(report.concessions)},
          {"seconds", seconds},
          {"interrupted", stopped.load()},
          {"failures", failures}};
}

void print(const fuzz::Failure& f, const FuzzOptions& options) {
  std::cout << "// Program " << f.number << " of seed " << options.seed << ": " << f.mismatch.kind << "\n// "
            << f.mismatch.setup << "\n/* " << f.mismatch.detail << "\n*/\n"
            << f.source << std::endl;
}

void print(const fuzz::Report& report, const FuzzOptions& options, double seconds) {
  std::cout << report.programs << " programs of seed " << options.seed << " in " << duration(seconds)
            << (stopped ? ", interrupted" : "") << ": " << report.failures.size() << " differ from eager; "
            << report.compiled << " compiled, " << report.refused << " refused by eager and compiled alike, "
            << report.uncompiled << " run uncompiled; gradients of " << report.differentiated
            << " compared, of higher order of " << report.twice;
  if (options.cache) std::cout << "; " << report.loaded << " loaded from the cache";
  std::cout << "\n";
  for (const auto& [reason, n] : report.reasons) std::cout << "  uncompiled " << n << ": " << reason << "\n";
  for (const auto& [what, n] : report.concessions) std::cout << "  concession " << n << ": " << what << "\n";
}

/// One line that is written over, on a terminal only.
void print_progress(const fuzz::Report& report, const FuzzOptions& options, double seconds) {
  if (!isatty(STDERR_FILENO)) return;
  std::cerr << "\r" << report.programs << " of " << options.programs << " programs, "
            << uint64_t(double(report.programs) / seconds) << " a second, " << report.failures.size()
            << " differ\033[K" << (report.programs < options.programs ? "" : "\n") << std::flush;
}

/// Ctrl-C ends the wait for the children, and what is known by then is reported.
void stop_at_interrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { stopped = true; };
  sigaction(SIGINT, &action, nullptr);
}

/// The environment says more than what a program asks for, and nothing would be saved or loaded.
void expect_cache() {
  if (!cache::settle({.local = false}).enabled)
    throw Error(
        "--cache compares what is loaded from a cache, and TANDEM_CACHE=off switches all caches off; unset "
        "TANDEM_CACHE, or leave --cache out");
}

void run_fuzz(const FuzzOptions& options) {
  if (options.cache) expect_cache();
  stop_at_interrupt();
  const auto start = std::chrono::steady_clock::now();
  fuzz::Audience audience;
  if (!options.json) audience.on_failure = [&](const fuzz::Failure& failure) { print(failure, options); };
  audience.on_progress = [&](const fuzz::Report& report) {
    print_progress(report, options, seconds_since(start));
  };
  audience.stop = &stopped;
  const ScratchFolder folder;
  fuzz::Setup setup;
  if (options.cache) setup.cache = folder.path;
  setup.watched = options.watched;
  if (!options.backend.empty()) setup.backends = {find_backend(options.backend)->name()};
  setup.rounds = options.backend == "fuse" || options.backend == "loops";
  setup.options.partitioner = find_partitioner(options.partitioner).name;
  if (options.watched) setenv("TANDEM_WATCHED_CALLS", "all", /*overwrite=*/1);
  const fuzz::Report report = fuzz::run_forked(
      {options.seed, options.first, options.programs, setup, options.most_failures, options.budgets},
      options.jobs, audience);
  if (options.json)
    std::cout << json_of(report, options, seconds_since(start)).dump() << "\n";
  else
    print(report, options, seconds_since(start));
  if (!report.failures.empty()) throw Exit{1};
  if (stopped) throw Exit{130};
}

}  // namespace

void add_fuzz(CLI::App& app) {
  auto options = std::make_shared<FuzzOptions>();
  CLI::App* command = app.add_subcommand(
      "fuzz", "Compare random programs, eager and compiled; a difference is shrunk and printed as C++");
  command->add_option("--programs", options->programs, "How many")->capture_default_str();
  command->add_option("--seed", options->seed, "Which series of programs")->capture_default_str();
  command->add_option("--first", options->first, "Where in the series to start")->capture_default_str();
  command->add_option("--jobs", options->jobs, "How many at a time")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--failures", options->most_failures, "Stop after so many differences")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--backend", options->backend,
                      "One backend in place of eager and debug; of fuse and loops results may be rounded "
                      "otherwise than eager's");
  command
      ->add_option("--partitioner", options->partitioner,
                   "Which splits forward and backward: default, min_cut, recompute_all or save_all")
      ->capture_default_str();
  command->add_flag("--budgets", options->budgets, "Each program at one of 11 memory budgets, 0 to 1");
  command->add_flag("--cache", options->cache,
                    "Compare each program a second time, loaded from a cache of this run's own");
  command->add_flag("--watched", options->watched,
                    "Watch every call: each program must do to real tensors what was recorded of it");
  command->add_flag("--json", options->json, "One JSON object");
  command->callback([options] { run_fuzz(*options); });
}

}  // namespace tandem::cli
