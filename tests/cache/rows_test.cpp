// What is found again, what is not, and what happens then: rows of the table of behaviours.
#include "cache/processes.h"

namespace tandem::test {
namespace {

using Rows = Processes;

const Callable wave = [](const Tensors& in) { return Tensors{in[0].sin() + in[1], in[1].matmul(in[1])}; };
Tensors wave_inputs(bool requires_grad = false) {
  return {torch::rand({2, 2}).requires_grad_(requires_grad), torch::rand({2, 2})};
}

TEST_F(Rows, M1_WhatWasCompiledIsFoundByTheNextProcess) {
  for (bool requires_grad : {false, true}) {
    next_process();
    const Tensors first = wave_inputs(requires_grad), second = wave_inputs(requires_grad);
    expect_same(train(Compiled(wave, options()), first), train(wave, first));
    EXPECT_COUNTERS(0u, 1u, 1u);
    const uint64_t entries = stats().entries;
    next_process();
    expect_same(train(Compiled(wave, strict()), second), train(wave, second));
    EXPECT_COUNTERS(1u, 0u, 0u);
    expect_only_traced();
    EXPECT_GT(counter("cache_time_saved_us"), 0u);
    EXPECT_EQ(stats().entries, entries);
    EXPECT_EQ(Compiled(wave, options()).explain(second).cache_state, "hit");
  }
}

TEST_F(Rows, M2_ATrainingEntryIsSavedWhenItsBackwardExists) {
  const Callable fn = [](const Tensors& in) { return Tensors{in[0].cos() + in[1]}; };
  const Tensors inputs = wave_inputs(true);
  for (int process = 0; process < 2; ++process) {
    next_process();
    Compiled(fn, options())(inputs);
    EXPECT_COUNTERS(0u, 1u, 0u);
    EXPECT_TRUE(files("entries").empty());
  }
  next_process();
  expect_same(train(Compiled(fn, options()), inputs), train(fn, inputs));
  EXPECT_COUNTERS(0u, 1u, 1u);
  next_process();
  expect_same(train(Compiled(fn, strict()), inputs), train(fn, inputs));
  EXPECT_COUNTERS(1u, 0u, 0u);
  expect_only_traced();
}

TEST_F(Rows, M3_AnEntryWithoutItsCodeIsUnfitAndSavedAnew) {
  for (bool requires_grad : {false, true}) {
    test::remove_folder(directory());
    const Tensors inputs = wave_inputs(requires_grad);
    train(Compiled(wave, options()), inputs);
    EXPECT_EQ(files("artifacts").size(), requires_grad ? 2u : 1u);
    for (const auto& file : files("artifacts")) {
      SCOPED_TRACE(file);
      std::filesystem::remove(file);
      next_process();
      EXPECT_TRUE(
          contains(message<CacheError>([&] { Compiled(wave, strict())(inputs); }), "its code is not there"));
      EXPECT_EQ(counter("cache_unfit"), 1u);
      next_process();
      expect_same(train(Compiled(wave, options()), inputs), train(wave, inputs));
      EXPECT_EQ(counter("cache_unfit"), 1u);
      EXPECT_COUNTERS(0u, 1u, 1u);
      next_process();
      train(Compiled(wave, strict()), inputs);
      EXPECT_COUNTERS(1u, 0u, 0u);
    }
  }
}

// A backward that was added to the entry is in it no longer, so that it cannot keep the rest from being
// found.
TEST_F(Rows, M3_AVariantWithoutItsCodeIsNotCarriedOn) {
  const Callable fn = [](const Tensors& in) { return Tensors{in[0] * in[1]}; };
  const Tensors inputs{leaf({1, 2}), leaf({3, 4})};
  auto grad = [&](const Compiled& f, const Tensors& of) {
    return torch::autograd::grad({f(inputs)[0].sum()}, of);
  };
  {
    const Compiled f(fn, options());
    grad(f, inputs);
    const auto before = files("artifacts");
    grad(f, {inputs[1]});
    EXPECT_EQ(files("artifacts").size(), before.size() + 1);
    for (const auto& file : files("artifacts"))
      if (std::find(before.begin(), before.end(), file) == before.end()) std::filesystem::remove(file);
  }
  next_process();
  grad(Compiled(fn, options()), inputs);
  EXPECT_EQ(counter("cache_unfit"), 1u);
  next_process();
  grad(Compiled(fn, strict()), inputs);
  EXPECT_COUNTERS(1u, 0u, 0u);
}

TEST_F(Rows, M4_ACacheThatIsOffKeepsNothing) {
  Options off = options();
  off.cache.enabled = false;
  Options neither = options();
  neither.cache.local = false;
  const Tensors inputs = wave_inputs(true);
  for (const Options& some : {off, neither}) {
    expect_same(train(Compiled(wave, some), inputs), train(wave, inputs));
    EXPECT_EQ(Compiled(wave, some).explain(inputs).cache_state, "off");
  }
  setenv("TANDEM_CACHE", "off", 1);
  expect_same(train(Compiled(wave, strict()), inputs), train(wave, inputs));
  EXPECT_EQ(Compiled(wave, options()).explain(inputs).cache_state, "off");
  unsetenv("TANDEM_CACHE");
  EXPECT_COUNTERS(0u, 0u, 0u);
  EXPECT_EQ(counter("cache_bypass"), 0u);
  EXPECT_FALSE(std::filesystem::exists(directory()));
}

TEST_F(Rows, M16_ADamagedEntryIsWarnedOfAndCompiledAgain) {
  const Tensors inputs = wave_inputs();
  auto damage = [&] {
    const auto entry = files("entries").at(0);
    std::string bytes = read_bytes(entry);
    bytes[bytes.size() / 2] ^= 1;
    write_bytes(entry, bytes);
    next_process();
  };
  Compiled(wave, options())(inputs);
  damage();
  testing::internal::CaptureStderr();
  expect_same(Compiled(wave, options())(inputs), wave(inputs));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("warning"), said.rfind("warning")) << said;
  EXPECT_TRUE(contains(said, files("entries").at(0).filename())) << said;
  EXPECT_EQ(counter("cache_corrupt"), 1u);
  EXPECT_COUNTERS(0u, 1u, 1u);
  next_process();
  Compiled(wave, strict())(inputs);
  EXPECT_COUNTERS(1u, 0u, 0u);
  damage();
  EXPECT_TRUE(contains(message<CacheError>([&] { Compiled(wave, strict())(inputs); }), "cache entry"));
}

TEST_F(Rows, M16_DamagedCodeIsCompiledAgain) {
  const Tensors inputs = wave_inputs();
  Compiled(wave, options())(inputs);
  write_bytes(files("artifacts").at(0), "nonsense");
  next_process();
  expect_same(Compiled(wave, options())(inputs), wave(inputs));
  EXPECT_EQ(counter("cache_corrupt"), 1u);
  EXPECT_EQ(counter("cache_unfit"), 1u);
  EXPECT_COUNTERS(0u, 1u, 1u);
  next_process();
  Compiled(wave, strict())(inputs);
  EXPECT_COUNTERS(1u, 0u, 0u);
}

void expect_unexpected_bypass(const Options& options, const std::string& reason) {
  const Tensors inputs = wave_inputs(true);
  expect_same(train(Compiled(wave, options), inputs), train(wave, inputs));
  EXPECT_EQ(counter("cache_bypass"), 1u);
  EXPECT_EQ(counter("cache_saved"), 0u);
  const Explanation found = Compiled(wave, options).explain(inputs);
  EXPECT_EQ(found.cache_state, "bypass");
  EXPECT_TRUE(contains(found.bypass_reason, "unexpected: ") && contains(found.bypass_reason, reason))
      << found.bypass_reason;
  Options strict = options;
  strict.cache.strict = true;
  EXPECT_TRUE(contains(message<CacheError>([&] { train(Compiled(wave, strict), inputs); }), reason));
}

TEST_F(Rows, AFolderThatTakesNothingIsAnUnexpectedBypass) {
  write_bytes(folder.path() / "file", "");
  Options under_a_file = options();
  under_a_file.cache.directory = folder.path() / "file" / "cache";
  expect_unexpected_bypass(under_a_file, "file");
}

TEST_F(Rows, AFullFolderIsAnUnexpectedBypass) {
  Options tiny = options();
  tiny.cache.max_bytes = 100;
  expect_unexpected_bypass(tiny, "max_bytes");
}

TEST_F(Rows, AFolderThatOthersMayWriteIsAnUnexpectedBypass) {
  std::filesystem::create_directory(directory());
  std::filesystem::permissions(directory(), std::filesystem::perms::all);
  expect_unexpected_bypass(options(), directory());
}

}  // namespace
}  // namespace tandem::test
