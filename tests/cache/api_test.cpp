// What users ask of the cache as a whole.
#include <tandem/cache.h>

#include <fstream>

#include "cache/settings.h"
#include "cache/bundle.h"
#include "cache/fingerprints.h"
#include "cache/local_store.h"
#include "cache/scratch_folder.h"

namespace tandem::test {
namespace {

using Counted = std::map<std::string, uint64_t>;

Tensors cos_plus(const Tensors& in) { return {in[0].cos() + in[1]}; }

/// Each test has folders of its own, and has compiled nothing before.
struct CacheApi : testing::Test {
  CacheApi() { reset(); }

  CacheOptions folder(const std::string& name = "cache", const std::string& key = {}) const {
    return {.directory = scratch.path() / name, .signing_key = key};
  }
  std::filesystem::path file(const std::string& name = "bundle") const { return scratch.path() / name; }

  /// A step of training; what it counted.
  Counted train(const Function& function, const CacheOptions& cache) const {
    const Counted before = counters();
    auto compiled = compile(function, {.cache = cache});
    const Tensors inputs = {ones_leaf({3}), ones_leaf({3})};
    compiled(inputs)[0].sum().backward();
    EXPECT_TRUE(at::equal(inputs[0].grad(), -inputs[0].detach().sin()));
    Counted after = counters();
    for (const auto& [name, number] : before) after[name] -= number;
    return after;
  }

  ScratchFolder scratch;
};

TEST_F(CacheApi, M38_AfterClearingItMissesAgain) {
  EXPECT_EQ(train(cos_plus, folder())["cache_miss"], 1u);
  EXPECT_EQ(train(cos_plus, folder())["cache_hit"], 1u);
  cache::clear(folder());
  EXPECT_EQ(cache::stats(folder()).entries, 0u);
  EXPECT_EQ(train(cos_plus, folder())["cache_miss"], 1u);
  EXPECT_EQ(train(cos_plus, folder())["cache_hit"], 1u);
}

TEST_F(CacheApi, M38_AnotherFolderSeesNoEarlierEntry) {
  train(cos_plus, folder());
  EXPECT_EQ(train(cos_plus, folder("other"))["cache_miss"], 1u);
  cache::clear(folder("other"));
  EXPECT_EQ(train(cos_plus, folder())["cache_hit"], 1u);
}

TEST_F(CacheApi, ClearingAnAbsentFolderMakesNone) {
  cache::clear(folder());
  EXPECT_FALSE(std::filesystem::exists(folder().directory));
}

TEST_F(CacheApi, StatsCountFolderAndProcess) {
  EXPECT_EQ(cache::stats(folder()).entries, 0u);
  train(cos_plus, folder());
  train(cos_plus, folder());
  const cache::Stats stats = cache::stats(folder());
  EXPECT_EQ(stats.directory, folder().directory);
  EXPECT_EQ(stats.entries, 1u);
  EXPECT_EQ(stats.artifacts, 2u);
  EXPECT_GT(stats.bytes, 0u);
  EXPECT_EQ(stats.hits, 1u);
  EXPECT_EQ(stats.misses, 1u);
  EXPECT_EQ(stats.bypasses, 0u);
  EXPECT_EQ(stats.saved, 1u);
  EXPECT_GT(stats.seconds_saved, 0.0);
  EXPECT_EQ(cache::stats({.local = false}).entries, 0u);
}

TEST_F(CacheApi, DefaultsComeFromTheEnvironmentAlsoWhenTheCacheIsOff) {
  setenv("TANDEM_CACHE_DIR", folder().directory.c_str(), 1);
  train(cos_plus, {});
  setenv("TANDEM_CACHE", "off", 1);
  EXPECT_EQ(cache::stats().entries, 1u);
  cache::clear();
  EXPECT_EQ(cache::stats().entries, 0u);
  unsetenv("TANDEM_CACHE");
  unsetenv("TANDEM_CACHE_DIR");
}

TEST_F(CacheApi, IsSwitchedOffByEveryWordThatSaysSo) {
  for (const char* word : {"off", "0", "false", "no", "on", "1", "true", "yes", "", "perhaps"}) {
    setenv("TANDEM_CACHE", word, 1);
    EXPECT_EQ(cache::settle({.directory = folder().directory}).enabled,
              std::string_view("off 0 false no").find(word) == std::string_view::npos || !*word)
        << word;
  }
  unsetenv("TANDEM_CACHE");
}

TEST_F(CacheApi, ARemoteStoreThatIsOffIsNotTheOneOfTheEnvironment) {
  auto remote = [&](const std::string& given) {
    return cache::settle({.directory = folder().directory, .remote = given}).remote;
  };
  setenv("TANDEM_REMOTE_CACHE", "redis://there", 1);
  EXPECT_EQ(remote(""), "redis://there");
  EXPECT_EQ(remote("redis://here"), "redis://here");
  EXPECT_EQ(remote("off"), "");
  setenv("TANDEM_REMOTE_CACHE", "off", 1);
  EXPECT_EQ(remote(""), "");
  unsetenv("TANDEM_REMOTE_CACHE");
  EXPECT_EQ(remote("off"), "");
}

// ---- keys

TEST_F(CacheApi, M6_TheKeyIsTheOneThatACompileUses) {
  const Tensors inputs = {ones_leaf({3}), ones_leaf({3})};
  const std::string key = cache::key(cos_plus, inputs);
  EXPECT_EQ(key.size(), 64u);
  EXPECT_EQ(cache::key(cos_plus, inputs), key);
  EXPECT_EQ(compile(cos_plus, {.cache = folder()}).explain(inputs).key, key);
  EXPECT_NE(cache::key(cos_plus, {ones_leaf({4}), ones_leaf({4})}), key);
  EXPECT_NE(cache::key(cos_plus, inputs, {.backend = "debug"}), key);
  EXPECT_EQ(compile(cos_plus, {.backend = "debug", .cache = folder()}).explain(inputs).key,
            cache::key(cos_plus, inputs, {.backend = "debug"}));
  train(cos_plus, folder());
  EXPECT_EQ(cache::LocalStore(folder().directory, "", 1 << 20).get(cache::Kind::Entry, key).state,
            cache::Fetched::State::Found);
}

TEST_F(CacheApi, M6_AskingForAKeyCompilesAndKeepsNothing) {
  const Tensors inputs = {ones_leaf({3}), ones_leaf({3})};
  setenv("TANDEM_CACHE_DIR", folder().directory.c_str(), 1);
  cache::key(cos_plus, inputs);
  unsetenv("TANDEM_CACHE_DIR");
  Counted counted = counters();
  EXPECT_EQ(counted["trace"], 1u);
  for (const char* never : {"joint_trace", "compile_forward", "compile_backward", "cache_hit", "cache_miss",
                            "cache_bypass", "cache_saved"})
    EXPECT_EQ(counted[never], 0u) << never;
  EXPECT_FALSE(std::filesystem::exists(folder().directory));
  EXPECT_FALSE(inputs[0].grad().defined());
}

TEST_F(CacheApi, M6_KeysOfTypedFunctionsAndModules) {
  auto typed = [](const at::Tensor& a, const at::Tensor& b) { return a.cos() + b; };
  const at::Tensor a = ones_leaf({3}), b = ones_leaf({3});
  EXPECT_EQ(cache::key(typed, {a, b}), compile(typed, {.cache = folder()}).explain(a, b).key);
  torch::nn::Linear linear(3, 2);
  const at::Tensor x = torch::ones({4, 3});
  EXPECT_EQ(cache::key(linear, {x}), compile(linear, {.cache = folder()}).explain(x).key);
  EXPECT_EQ(cache::key(linear.ptr(), {x}), cache::key(linear, {x}));
}

TEST_F(CacheApi, M6_KeysOfInputsThatShareWrittenMemory) {
  auto writes = [](const Tensors& in) {
    in[0].add_(1);
    return Tensors{in[1] * 2};
  };
  const at::Tensor base = torch::ones({6});
  const Tensors inputs = {base.narrow(0, 0, 4), base.narrow(0, 2, 4)};
  const Explanation found = compile(writes, {.cache = folder()}).explain(inputs);
  ASSERT_EQ(found.eager_reason, "");
  EXPECT_EQ(cache::key(writes, inputs), found.key);
  EXPECT_TRUE(at::equal(base, torch::ones({6})));
}

TEST_F(CacheApi, WhatIsNotCachedHasNoKey) {
  const at::Tensor x = ones_leaf({3});
  auto hooked = [](const Tensors& in) {
    at::Tensor y = in[0].sin();
    y.register_hook([](const at::Tensor& gradient) { return gradient * 2; });
    return Tensors{y};
  };
  EXPECT_TRUE(contains(message<CacheError>([&] { cache::key(hooked, {x}); }), "hook"));
  EXPECT_TRUE(contains(
      message<CacheError>([&] { cache::key([x](const Tensors& in) { return Tensors{in[0] * x}; }, {x}); }),
      "captured"));
  EXPECT_TRUE(contains(message<Error>([&] { cache::key(cos_plus, {x, x}, {.backend = "steam"}); }), "steam"));
}

// ---- bundles

TEST_F(CacheApi, M5_ABundleMakesAnEmptyCacheWarm) {
  train(cos_plus, folder());
  cache::export_bundle(file(), folder());
  EXPECT_EQ(train(cos_plus, folder("without"))["cache_miss"], 1u);
  cache::import_bundle(file(), folder("with"));
  const cache::Stats stats = cache::stats(folder("with"));
  EXPECT_EQ(stats.entries, 1u);
  EXPECT_EQ(stats.artifacts, 2u);
  Counted counted = train(cos_plus, folder("with"));
  EXPECT_EQ(counted["cache_hit"], 1u);
  EXPECT_EQ(counted["compile_forward"] + counted["compile_backward"] + counted["joint_trace"], 0u);
}

TEST_F(CacheApi, M5_WhatWasLoadedIsExportedAsWell) {
  train(cos_plus, folder());
  cache::export_bundle(file(), folder());
  cache::import_bundle(file(), folder("second"));
  cache::export_bundle(file("nothing"), folder("second"));
  EXPECT_EQ(cache::read_bundle(file("nothing"), "").size(), 0u) << "the process has used nothing of it yet";
  train(cos_plus, folder("second"));
  cache::export_bundle(file("again"), folder("second"));
  EXPECT_EQ(cache::read_bundle(file("again"), "").size(), 3u);
  EXPECT_EQ(read_bytes(file("again")), read_bytes(file()));
}

TEST_F(CacheApi, M5_WithoutOptionsAllCachesOfTheProcessAreExported) {
  auto sine = [](const Tensors& in) { return Tensors{in[0].cos() + in[1] * 2}; };
  train(cos_plus, folder());
  train(sine, folder("other"));
  cache::export_bundle(file());
  cache::clear(folder());
  cache::clear(folder("other"));
  cache::import_bundle(file(), folder("third"));
  EXPECT_EQ(train(cos_plus, folder("third"))["cache_hit"], 1u);
  EXPECT_EQ(train(sine, folder("third"))["cache_hit"], 1u);
}

TEST_F(CacheApi, SignedBundlesAreReadWithTheirKeyAlone) {
  train(cos_plus, folder("cache", "secret"));
  cache::export_bundle(file(), folder("cache", "secret"));
  EXPECT_TRUE(
      contains(message<Error>([&] { cache::import_bundle(file(), folder("with", "other")); }), "sign"));
  EXPECT_FALSE(std::filesystem::exists(folder("with").directory));
  cache::import_bundle(file(), folder("with", "secret"));
  EXPECT_EQ(train(cos_plus, folder("with", "secret"))["cache_hit"], 1u);
  train(cos_plus, folder("unsigned"));
  cache::export_bundle(file(), folder("unsigned"));
  EXPECT_TRUE(
      contains(message<Error>([&] { cache::import_bundle(file(), folder("third", "secret")); }), "sign"));
}

TEST_F(CacheApi, ABundleUnderWrongNamesPutsNothing) {
  train(cos_plus, folder());
  cache::export_bundle(file(), folder());
  std::vector<cache::BundleItem> items = cache::read_bundle(file(), "");
  for (cache::BundleItem& item : items) {
    std::vector<cache::BundleItem> renamed = {items};
    renamed[size_t(&item - items.data())].name = std::string(64, 'a');
    cache::write_bundle(file("renamed"), renamed, "");
    EXPECT_TRUE(
        contains(message<Error>([&] { cache::import_bundle(file("renamed"), folder("with")); }), "aaaa"));
    EXPECT_FALSE(std::filesystem::exists(folder("with").directory));
  }
  EXPECT_EQ(items.size(), 3u);
}

TEST_F(CacheApi, NothingIsImportedWhereThereIsNoFolder) {
  EXPECT_TRUE(contains(message<Error>([&] { cache::import_bundle(file(), {.local = false}); }),
                       "CacheOptions::local"));
}

}  // namespace
}  // namespace tandem::test
