// Artifacts of `fuse` that were damaged at random: whatever is not refused is code of the graph, and computes
// what that says; none that is not signed is opened with a key. TANDEM_CACHE_LONG says a million of each.
#include <tandem/build.h>

#include "backends/registry.h"
#include "cache/code_of_fuse.h"
#include "cache/frame.h"
#include "cache/long_form.h"
#include "fuzz/tolerance.h"
#include "native/code.h"
#include "support/mutate.h"

#include <chrono>

namespace tandem::test {
namespace {

/// Two groups with a product between them.
Graph graph_of_groups() {
  Graph graph;
  Builder build(graph);
  const Value x = build.input({4, 6}), w = build.input({6, 5});
  const Value smooth = build.call("aten::tanh", {build.call("aten::mul.Tensor", {x, x})}),
              product = build.call("aten::mm", {smooth, w}),
              total = build.call("aten::sum", {build.call("aten::exp", {product}), c10::IValue()});
  graph.set_outputs({product, total});
  return graph;
}

struct Loader {
  const std::shared_ptr<Backend> backend = make_fuse_backend();
  const Graph graph = graph_of_groups();
  const Tensors inputs = {at::rand({4, 6}), at::rand({6, 5})}, wanted = graph.run(Tensors(inputs));

  std::string artifact() const {
    const auto bytes = backend->compile(graph, {})->artifact().value();
    return {bytes.begin(), bytes.end()};
  }
  /// Null where the bytes are refused.
  std::shared_ptr<Executable> load(const std::string& bytes) const {
    backend->reset();
    try {
      return backend->load({bytes.begin(), bytes.end()}, graph, {});
    } catch (const Error&) {
      return nullptr;
    }
  }
  /// Whether they are taken; where they then compute something else that is no Error.
  bool runs(const std::string& bytes) const {
    const auto code = load(bytes);
    if (!code) return false;
    const Tensors got = code->run(Tensors(inputs));
    for (size_t i = 0; i < wanted.size(); ++i)
      if (!fuzz::is_near(wanted[i], got[i])) throw std::logic_error("it computes something else");
    return true;
  }
};

struct CountOfMutations {
  size_t all = in_long_form<size_t>(1'000'000, 30'000), accepted = 0;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  void print(const char* what) const {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%s: %zu mutations, %zu accepted, %.0f s\n", what, all, accepted, seconds);
  }
};

void expect_harmless(const char* what, const std::function<bool(Mutator& mutate)>& is_taken) {
  CountOfMutations count;
  Mutator mutate(11);
  for (size_t i = 0; i < count.all; ++i) {
    try {
      count.accepted += is_taken(mutate);
    } catch (const std::exception& error) {
      FAIL() << what << ", mutation " << i << ": " << error.what();
    }
  }
  count.print(what);
}

TEST(MutatedCode, IsRefusedOrComputesWhatTheGraphSays) {
  if (!native::can_compile()) GTEST_SKIP() << "there is no LLVM";
  const Loader loader;
  const std::string whole = loader.artifact();
  ASSERT_TRUE(loader.runs(whole));
  expect_harmless("artifacts", [&](Mutator& mutate) { return loader.runs(mutate(whole)); });
  const size_t code = whole.find("\x89TDCODE");
  ASSERT_LT(code, whole.size());
  expect_harmless("artifacts, in what says which nodes are a group", [&](Mutator& mutate) {
    return loader.runs(mutate(whole.substr(0, code)) + whole.substr(code));
  });
}

/// It is not run: who can write such a file where there is no key may have his code run.
TEST(MutatedCode, WithARightChecksumIsReadWithinItsBounds) {
  if (!native::can_compile()) GTEST_SKIP() << "there is no LLVM";
  const Loader loader;
  const std::string whole = loader.artifact();
  expect_harmless("artifacts, in code whose checksum is made right", [&](Mutator& mutate) {
    return loader.load(with_code_changed(
               whole, [&](const std::string& code) { return with_right_checksum(mutate(code)); })) != nullptr;
  });
}

/// With the checksum of what it says now, so that the signature alone stands against it.
TEST(MutatedCode, IsNeverOpenedWithAKeyUnlessItIsSigned) {
  if (!native::can_compile()) GTEST_SKIP() << "there is no LLVM";
  const std::string payload = Loader().artifact(), name = sha256(payload);
  auto sealed_with = [&](const char* key) { return cache::seal(cache::Kind::Artifact, name, payload, key); };
  const std::string own = sealed_with("secret");
  auto is_opened = [&](const std::string& bytes) {
    return cache::open(cache::Kind::Artifact, name, bytes, "secret").complaint.empty();
  };
  ASSERT_TRUE(is_opened(own) && with_right_checksum(own) == own);
  for (const auto& [what, whole] : {std::pair{"not signed", sealed_with("")},
                                    {"signed with another key", sealed_with("another")},
                                    {"signed, then changed", own}}) {
    CountOfMutations count;
    Mutator mutate(12);
    for (size_t i = 0; i < count.all; ++i) {
      const std::string damaged = with_right_checksum(mutate(whole));
      count.accepted += damaged != own && is_opened(damaged);
    }
    EXPECT_EQ(count.accepted, 0u);
    count.print(what);
  }
}

}  // namespace
}  // namespace tandem::test
