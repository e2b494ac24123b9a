// Machine code in the cache: loaded without LLVM, and refused wherever it is not what was put there, is not
// signed though it should be, or is not for this processor.
#include "cache/children.h"
#include "cache/code_of_fuse.h"
#include "cache/processes.h"
#include "fuzz/tolerance.h"
#include "base/processor.h"

#include "base/sha256.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

Tensors smooth(const Tensors& in) { return {at::tanh(at::exp(-in[0] * in[0]) + 1) * at::sigmoid(in[0])}; }

bool is_open(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(library) != std::string::npos) return true;
  return false;
}

/// Trains one step with the cache of the environment, and says in words what came of it.
std::string trained_with_fuse() {
  const std::vector<float> values = {-2, -0.5, 0, 0.25, 1, 3};
  const Tensors wanted = train(smooth, {leaf(values)});
  std::string said;
  try {
    const Tensors got = train(Compiled(smooth, {.backend = "fuse"}), {leaf(values)});
    for (size_t i = 0; i < wanted.size(); ++i)
      if (!fuzz::is_near(wanted[i], got[i])) said += "wrong, ";
  } catch (const Error& error) {
    said = std::string("error: ") + error.what() + ", ";
  }
  for (const auto& [name, word] : {std::pair{"cache_hit", "hit"},
                                   {"cache_miss", "miss"},
                                   {"cache_corrupt", "damaged"},
                                   {"cache_unfit", "unfit"},
                                   {"kernel_compiled", "compiled"}})
    if (counter(name) > 0) said += std::string(word) + ", ";
  return said + (is_open("libtandem_llvm") || is_open("libLLVM") ? "with LLVM" : "without LLVM");
}

TEST(DISABLED_Child, TrainsWithFuse) { print_to_parent(trained_with_fuse()); }

const std::string fresh = "miss, compiled, with LLVM", loaded = "hit, without LLVM";

struct FuseArtifacts : Processes {
  void SetUp() override {
    if (!native::can_compile()) GTEST_SKIP() << "there is no LLVM";
    Processes::SetUp();
  }

  std::string train_here(const std::string& environment = "") const {
    return printed_by_child("TrainsWithFuse", environment_with(environment));
  }
  /// In a program that lies where no plugin is near.
  std::string train_apart(const std::string& environment = "") const {
    const fs::path program = folder.path() / "apart" / "bin" / "program";
    if (!fs::exists(program)) {
      fs::create_directories(program.parent_path());
      std::error_code elsewhere;
      fs::create_hard_link(fs::canonical("/proc/self/exe"), program, elsewhere);
      if (elsewhere) fs::copy_file(fs::canonical("/proc/self/exe"), program);
    }
    return printed_by(start_child("TrainsWithFuse", environment_with(environment), ".", program));
  }
  std::string environment_with(const std::string& more) const {
    return "TANDEM_CACHE_DIR=" + directory().string() + " " + more;
  }

  /// Puts other code into the place of what the entries name, as one would who may write the folder and knows
  /// how entries are read: only a signature could tell.
  void forge(const std::function<std::string(const std::string& code)>& change) const {
    cache::LocalStore store(directory(), "", 1 << 30);
    auto changed = [&](const std::string& name) {
      const std::string payload = with_code_changed(store.look(cache::Kind::Artifact, name).payload, change);
      store.put(cache::Kind::Artifact, sha256(payload), payload);
      return sha256(payload);
    };
    for (const cache::StoredFile& file : store.list()) {
      if (file.kind != cache::Kind::Entry) continue;
      cache::StoredEntry entry = cache::decode(store.look(file.kind, file.name).payload);
      entry.first.artifact = changed(entry.first.artifact);
      for (cache::StoredBackward& backward : entry.first.backwards)
        backward.artifact = changed(backward.artifact);
      store.put(file.kind, file.name, cache::encode(entry));
    }
  }
};

TEST_F(FuseArtifacts, AreLoadedByAnotherProcessWithoutLlvm) {
  EXPECT_EQ(train_here(), fresh);
  EXPECT_EQ(train_here(), loaded);
  EXPECT_EQ(train_apart(), loaded);
}

TEST_F(FuseArtifacts, WithoutThePluginItIsSaidThatNothingCanBeCompiled) {
  const std::string said = train_apart();
  for (const char* part : {"error: Machine code cannot be made", "there is no libtandem_llvm.so in ",
                           "Use another backend", "without LLVM"})
    EXPECT_TRUE(contains(said, part)) << said;
  EXPECT_EQ(files("artifacts").size(), 0u);
}

TEST_F(FuseArtifacts, ThatAreNotSignedNeverRunUnderAKey) {
  const std::string key = "TANDEM_CACHE_KEY=secret";
  EXPECT_EQ(train_here(), fresh);
  EXPECT_TRUE(contains(train_apart(key), "error: Machine code cannot be made")) << train_apart(key);
  EXPECT_TRUE(contains(train_here(key), "compiled, with LLVM")) << "and is signed from now on";
  EXPECT_EQ(train_apart(key), loaded);
  EXPECT_TRUE(contains(train_apart("TANDEM_CACHE_KEY=another"), "error: Machine code cannot be made"));
}

TEST_F(FuseArtifacts, ThatAreNotSignedNeverRunThoughTheirEntryIs) {
  const std::string key = "TANDEM_CACHE_KEY=secret";
  EXPECT_EQ(train_here(key), fresh);
  cache::LocalStore with_key(directory(), "secret", 1 << 30), without(directory(), "", 1 << 30);
  for (const cache::StoredFile& file : with_key.list()) {
    if (file.kind != cache::Kind::Artifact) continue;
    const std::string payload = with_key.look(file.kind, file.name).payload;
    ASSERT_NE(payload, "");
    without.remove(file.kind, file.name);
    without.put(file.kind, file.name, payload);
  }
  EXPECT_EQ(train_apart(), loaded) << "who has no key trusts what is whole";
  EXPECT_TRUE(contains(train_apart(key), "error: Machine code cannot be made"));
}

/// As `native::to_bytes` lays them out.
constexpr size_t features_size_at = 24, features_at = 80;

TEST_F(FuseArtifacts, ForOtherProcessorsAreRefused) {
  EXPECT_EQ(train_here(), fresh);
  forge([](const std::string& code) {
    const std::string& all = processor_features();
    EXPECT_EQ(code.substr(features_at, all.size()), all);
    const std::string features = all + ",avx1024f";
    const uint64_t size = features.size();
    std::string changed = code.substr(0, features_size_at);
    changed.append(reinterpret_cast<const char*>(&size), sizeof size);
    changed += code.substr(features_size_at + sizeof size, features_at - features_size_at - sizeof size);
    changed += features;
    return with_right_checksum(changed + code.substr(features_at + all.size()));
  });
  const std::string said = train_apart();
  EXPECT_TRUE(contains(said, "error: Machine code cannot be made") && contains(said, "unfit")) << said;
  EXPECT_EQ(train_here(), "miss, unfit, compiled, with LLVM");
  EXPECT_EQ(train_apart(), loaded) << "what was compiled has taken their place";
}

TEST_F(FuseArtifacts, OfWhichAByteWasFlippedAreRefused) {
  for (const double place : {0.0, 0.3, 0.6, 0.999}) {
    EXPECT_TRUE(contains(train_here(), "compiled")) << place;
    for (const fs::path& file : files("artifacts")) {
      std::string bytes = read_bytes(file);
      bytes[size_t(place * double(bytes.size()))] ^= 1;
      write_bytes(file, bytes);
    }
    const std::string said = train_apart();
    EXPECT_TRUE(contains(said, "error: Machine code cannot be made") && contains(said, "damaged")) << said;
  }
}

TEST_F(FuseArtifacts, OfWhichAByteWasFlippedBehindTheChecksumOfTheFileAreRefused) {
  for (const double place : {0.0, 0.1, 0.5, 0.999}) {
    EXPECT_TRUE(contains(train_here(), "compiled")) << place;
    forge([&](std::string code) {
      code[size_t(place * double(code.size()))] ^= 1;
      return code;
    });
    const std::string said = train_apart();
    EXPECT_TRUE(contains(said, "error: Machine code cannot be made") && contains(said, "unfit")) << said;
  }
}

}  // namespace
}  // namespace tandem::test
