// Many processes that compile the same functions at the same time, with one folder for all of them.
#include <cstdlib>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "cache/children.h"
#include "cache/levels.h"
#include "cache/long_form.h"
#include "cache/processes.h"

namespace tandem::test {
namespace {

using CompilingProcesses = Processes;

struct Crowd {
  /// so many compiles by each, of functions drawn at random; 0: each function once
  size_t processes, compiles, functions;
};

using Unary = at::Tensor (*)(const at::Tensor&);
using Binary = at::Tensor (*)(const at::Tensor&, const at::Tensor&);
constexpr Unary firsts[] = {at::sin, at::cos, at::tanh, at::sigmoid, at::exp};
constexpr Binary seconds[] = {at::mul, at::matmul, at::maximum, at::atan2, at::fmax};

/// One of fifty functions, no two of which have a key in common: every other one is trained.
struct Subject {
  Callable fn;
  Tensors inputs;
};
Subject subject(size_t number) {
  const bool trained = number % 2;
  const Unary first = firsts[number / 2 % 5];
  const Binary second = seconds[number / 10];
  const Tensors inputs{torch::rand({3, 3}).requires_grad_(trained),
                       torch::rand({3, 3}).requires_grad_(trained)};
  return {[=](const Tensors& in) { return Tensors{second(first(in[0]), in[1]) * 2}; }, inputs};
}

struct Tally {
  uint64_t hits = 0, misses = 0, saved = 0;
};

/// Compiles these functions, each in an object of its own, and compares what they give with what they give
/// uncompiled.
Tally compile_all(const std::vector<size_t>& numbers, const Options& options) {
  for (const size_t number : numbers) {
    SCOPED_TRACE("function " + std::to_string(number));
    const Subject one = subject(number);
    expect_same(train(Compiled(one.fn, options), one.inputs), train(one.fn, one.inputs));
  }
  for (const char* trouble : {"cache_bypass", "cache_unfit", "cache_corrupt"})
    EXPECT_EQ(counter(trouble), 0u) << trouble;
  EXPECT_EQ(counter("trace"), numbers.size());
  EXPECT_EQ(counter("compile_forward") + counter("compile_inference"), counter("cache_miss"))
      << "what is found is not compiled";
  return {counter("cache_hit"), counter("cache_miss"), counter("cache_saved")};
}

std::vector<size_t> choose(const Crowd& crowd, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<size_t> numbers(crowd.compiles ? crowd.compiles : crowd.functions);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = crowd.compiles ? random() % crowd.functions : i;
  return numbers;
}

/// Returns when all of them have come here, so that nobody finds everything done by those who started before;
/// or after a minute, when one of them has died.
void wait_for_others(const std::filesystem::path& meeting, size_t processes, unsigned self) {
  write_bytes(meeting / std::to_string(self), "");
  auto present = [&] { return test::in_folder(meeting).size(); };
  for (int waited = 0; waited < 60'000 && present() < processes; ++waited)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(DISABLED_Child, Compiles) {
  Crowd crowd{};
  unsigned self = 0;
  std::istringstream(std::getenv("TANDEM_TEST_CROWD")) >> crowd.processes >> crowd.compiles >>
      crowd.functions >> self;
  const std::filesystem::path folder = std::getenv("TANDEM_TEST_FOLDER");
  wait_for_others(folder / "meeting", crowd.processes, self);
  const Tally tally = compile_all(choose(crowd, self), {.cache = {.directory = folder / "cache"}});
  print_to_parent(std::to_string(tally.hits) + " " + std::to_string(tally.misses) + " " +
                  std::to_string(tally.saved));
}

Child start_compiling(const std::filesystem::path& folder, const Crowd& crowd, size_t self) {
  std::ostringstream environment;
  environment << "TANDEM_TEST_FOLDER='" << folder.string() << "' TANDEM_TEST_CROWD='" << crowd.processes
              << " " << crowd.compiles << " " << crowd.functions << " " << self << "'";
  return start_child("Compiles", environment.str());
}

Tally tally_of(Child child) {
  const std::string printed = printed_by(child);
  Tally tally;
  std::istringstream text(printed);
  EXPECT_TRUE(text >> tally.hits >> tally.misses >> tally.saved) << printed;
  return tally;
}

std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const std::filesystem::path& file : test::files_below(folder))
    if (file.filename() != "lock") names.insert(file.lexically_relative(folder));
  return names;
}

/// Every file opens, every entry is one of its key, and all that entries name is there.
void expect_all_readable(const std::filesystem::path& folder) {
  cache::LocalStore store(folder, "", 1 << 30);
  for (const cache::DamagedFile& file : store.verify()) ADD_FAILURE() << file.name << " " << file.complaint;
  std::set<std::string> there, named;
  for (const cache::StoredFile& file : store.list()) {
    const std::string payload = store.look(file.kind, file.name).payload;
    if (file.kind == cache::Kind::Artifact) {
      EXPECT_EQ(sha256(payload), file.name) << "the name of an artifact says what is in it";
      there.insert(file.name);
      continue;
    }
    const cache::StoredEntry entry = cache::decode(payload);
    EXPECT_EQ(cache::key_of(entry.components), file.name);
    for (const std::string& artifact : cache::artifacts_of(entry.first)) named.insert(artifact);
  }
  EXPECT_EQ(there, named);
}

TEST_F(CompilingProcesses, ShareOneFolder) {
  const Crowd crowd = in_long_form(Crowd{16, 200, 50}, Crowd{4, 20, 10});
  std::vector<Child> children;
  for (size_t i = 0; i < crowd.processes; ++i) children.push_back(start_compiling(folder.path(), crowd, i));
  Tally all;
  for (Child child : children) {
    const Tally one = tally_of(child);
    EXPECT_EQ(one.hits + one.misses, crowd.compiles);
    EXPECT_EQ(one.saved, one.misses);
    all.hits += one.hits;
    all.misses += one.misses;
  }
  EXPECT_GE(all.misses, crowd.functions);
  EXPECT_LE(all.misses, crowd.processes * crowd.functions) << "somebody missed twice";
  expect_all_readable(directory());
  // Not in this process, in which other tests have declared what is part of keys.
  const Crowd one_of_each{1, 0, crowd.functions};
  const std::filesystem::path alone = folder.path() / "alone";
  EXPECT_EQ(tally_of(start_compiling(alone, one_of_each, 0)).misses, crowd.functions);
  EXPECT_EQ(names_in(directory()), names_in(alone / "cache")) << "a process alone leaves the same files";
  EXPECT_EQ(tally_of(start_compiling(folder.path(), one_of_each, 0)).hits, crowd.functions);
  std::fprintf(stderr, "%zu processes, %zu compiles of %zu functions each: %llu misses, %llu hits\n",
               crowd.processes, crowd.compiles, crowd.functions, static_cast<unsigned long long>(all.misses),
               static_cast<unsigned long long>(all.hits));
}

}  // namespace
}  // namespace tandem::test
