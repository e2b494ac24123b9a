// What operators cost on this machine: measured once, noted beside the cache, and part of the key where a
// budget asks for it.
#include <ATen/Parallel.h>
#include <tandem/cache.h>

#include "cache/fingerprints.h"
#include "cache/notes.h"
#include "cache/scratch_folder.h"
#include "cache/settings.h"
#include "compile/machine_costs.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

Tensors sine_of_cosine(const Tensors& in) { return {in[0].cos().sin()}; }

/// On one thread, which others on the machine do not keep from being measured.
struct MachineCosts : testing::Test {
  MachineCosts() {
    setenv("TANDEM_COST_MODEL", "measured", 1);
    at::set_num_threads(1);
    reset();
  }
  ~MachineCosts() override {
    at::set_num_threads(threads);
    setenv("TANDEM_COST_MODEL", "builtin", 1);
  }

  CacheOptions folder(const std::string& name, const std::string& key = {}) const {
    return {.directory = scratch.path() / name, .signing_key = key};
  }
  std::vector<fs::path> notes_in(const std::string& name) const {
    std::vector<fs::path> found;
    if (fs::exists(scratch.path() / name / "notes"))
      for (const auto& file : fs::directory_iterator(scratch.path() / name / "notes"))
        found.push_back(file.path());
    return found;
  }
  /// The name under which the CPU's rates are noted.
  std::string name_of_note() const {
    machine_rates(c10::kCPU, folder("named"));
    return notes_in("named").at(0).filename();
  }
  Options with_budget(double budget, const std::string& name) const {
    return {.partitioner = "min_cut", .memory_budget = budget, .cache = folder(name)};
  }
  std::string key(double budget, const std::string& name) const {
    return cache::key(Callable(sine_of_cosine), {ones_leaf({3})}, with_budget(budget, name));
  }

  ScratchFolder scratch;
  const int threads = at::get_num_threads();
};

const std::string strange_words = "-77 101 102 103 104";

}  // namespace

TEST_F(MachineCosts, AreMeasuredAndNoted) {
  const MachineRates rates = machine_rates(c10::kCPU, folder("a"));
  EXPECT_TRUE(rates.is_measured);
  ASSERT_EQ(notes_in("a").size(), 1u);
  const auto noted = cache::read_note(folder("a"), notes_in("a")[0].filename());
  EXPECT_EQ(noted, to_words(rates.rates));
  EXPECT_GT(rates.rates.bytes, 1e7);
  EXPECT_LT(rates.rates.call_seconds, 1e-3);
}

TEST_F(MachineCosts, AreThoseThatAnEarlierProcessNoted) {
  cache::write_note(folder("b"), name_of_note(), strange_words);
  const MachineRates rates = machine_rates(c10::kCPU, folder("b"));
  EXPECT_TRUE(rates.is_measured);
  EXPECT_EQ(to_words(rates.rates), strange_words);
}

TEST_F(MachineCosts, AreMeasuredAgainWhereTheNoteIsDamaged) {
  const std::string name = name_of_note();
  cache::write_note(folder("b"), name, strange_words);
  std::string bytes = read_bytes(notes_in("b")[0]);
  bytes[bytes.size() / 2] ^= 1;
  write_bytes(notes_in("b")[0], bytes);
  const uint64_t before = counters()["cache_corrupt"];
  const MachineRates rates = machine_rates(c10::kCPU, folder("b"));
  EXPECT_TRUE(rates.is_measured);
  EXPECT_NE(to_words(rates.rates), strange_words);
  EXPECT_EQ(counters()["cache_corrupt"], before + 1);
  EXPECT_EQ(cache::read_note(folder("b"), name), to_words(rates.rates));
}

TEST_F(MachineCosts, AreMeasuredAgainWhereTheNoteIsNoneOfOurs) {
  const std::string name = name_of_note();
  cache::write_note(folder("b"), name, "1 2 3");
  EXPECT_TRUE(machine_rates(c10::kCPU, folder("b")).is_measured);
  EXPECT_NE(cache::read_note(folder("b"), name), "1 2 3");
  cache::write_note(folder("c"), name, strange_words);
  EXPECT_NE(to_words(machine_rates(c10::kCPU, folder("c", "a key")).rates), strange_words) << "not signed";
}

TEST_F(MachineCosts, LeaveNothingBehindWhereTheCacheIsOff) {
  CacheOptions off = folder("off");
  off.enabled = false;
  EXPECT_TRUE(machine_rates(c10::kCPU, off).is_measured);
  EXPECT_FALSE(fs::exists(off.directory));
}

TEST_F(MachineCosts, AreBuiltInWhereTheEnvironmentSaysSo) {
  setenv("TANDEM_COST_MODEL", "builtin", 1);
  EXPECT_FALSE(machine_rates(c10::kCPU, folder("a")).is_measured);
  key(0.5, "a");
  EXPECT_TRUE(notes_in("a").empty());
}

TEST_F(MachineCosts, AreMeasuredOnlyWhereABudgetAsksForThem) {
  compile(Callable(sine_of_cosine), with_budget(1, "a"))({ones_leaf({3})})[0].sum().backward();
  EXPECT_TRUE(notes_in("a").empty());
  Options own = with_budget(0.5, "a");
  own.cost_model = built_in_cost_model();
  compile(Callable(sine_of_cosine), own)({ones_leaf({3})})[0].sum().backward();
  compile(Callable(sine_of_cosine), with_budget(0.5, "a"))({torch::ones({3})});
  EXPECT_TRUE(notes_in("a").empty()) << "a given model, and a call without gradients";
  compile(Callable(sine_of_cosine), with_budget(0.5, "a"))({ones_leaf({3})})[0].sum().backward();
  EXPECT_EQ(notes_in("a").size(), 1u);
}

TEST_F(MachineCosts, AreInTheKeyWhereTheyAreUsed) {
  const std::string name = name_of_note();
  for (const char* folder_name : {"b", "c"}) cache::write_note(folder(folder_name), name, strange_words);
  cache::write_note(folder("d"), name, "-77 101 102 103 105");
  EXPECT_EQ(key(0.5, "b"), key(0.5, "c"));
  EXPECT_NE(key(0.5, "b"), key(0.5, "d"));
  EXPECT_EQ(key(1, "b"), key(1, "d"));
}

TEST_F(MachineCosts, OfTheDeviceAreMeasured) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "needs a GPU; nothing was measured on one";
  const MachineRates cpu = machine_rates(c10::kCPU, folder("a")),
                     gpu = machine_rates(c10::Device(c10::kCUDA, 0), folder("a"));
  EXPECT_TRUE(gpu.is_measured);
  EXPECT_GT(gpu.rates.flops, cpu.rates.flops);
  EXPECT_GT(gpu.rates.bytes, cpu.rates.bytes);
  EXPECT_GT(gpu.rates.call_seconds, 5e-7) << "kernels were waited for";
  EXPECT_LT(gpu.rates.narrow_flops, 1e16) << "kernels were waited for";
  EXPECT_EQ(notes_in("a").size(), 2u);
}

}  // namespace tandem::test
