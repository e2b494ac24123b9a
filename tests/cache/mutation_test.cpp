// Entries, graphs and joint graphs that were damaged at random: whatever is not refused is valid, and memory
// stays bounded. TANDEM_CACHE_MUTATIONS says how many; each kind of bytes takes its share.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>

#include "cache/attack.h"
#include "support/mutate.h"

using namespace tandem;
using namespace tandem::test;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool address_space_is_ours = false;  // the sanitizer takes terabytes of it for its own books
#else
constexpr bool address_space_is_ours = true;
#endif

/// While it lives, the process may take this much more address space than it has, so that an allocation
/// beyond that throws.
class MemoryLimit {
 public:
  explicit MemoryLimit(size_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    if (!address_space_is_ours) return;
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limited = before_;
    limited.rlim_cur = pages * size_t(sysconf(_SC_PAGESIZE)) + bytes;
    setrlimit(RLIMIT_AS, &limited);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

size_t mutations() {
  const char* asked = std::getenv("TANDEM_CACHE_MUTATIONS");
  return asked ? size_t(std::strtoull(asked, nullptr, 10)) : 100000;
}

struct Target {
  const char* name;
  std::string bytes;
  bool (*attack)(std::string_view bytes);
  size_t share;  ///< of a hundred
};

std::vector<Target> targets() {
  const cache::StoredEntry entry = sample_entry();
  return {{"entry", cache::encode(entry), attack_entry, 40},
          {"graph of every kind of constant", encode_graph(sample_of_constants()), attack_graph, 40},
          {"joint graph", entry.first.joint.bytes, attack_joint, 20}};
}

}  // namespace

TEST(Mutation, whatever_is_accepted_is_valid) {
  for (const Target& target : targets()) {
    ASSERT_TRUE(target.attack(target.bytes));
    const MemoryLimit limit(size_t(128) << 20);
    const size_t count = mutations() * target.share / 100;
    const auto start = std::chrono::steady_clock::now();
    Mutator mutate(2024);
    size_t accepted = 0;
    for (size_t i = 0; i < count; ++i) {
      const std::string damaged = mutate(target.bytes);
      try {
        accepted += target.attack(damaged);
      } catch (const std::exception& error) {
        FAIL() << target.name << ", mutation " << i << ": " << error.what();
      }
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%s: %zu bytes, %zu mutations, %zu accepted, %.0f a second\n", target.name,
                target.bytes.size(), count, accepted, double(count) / seconds);
    EXPECT_TRUE(count < 10000 || accepted > count / 1000)
        << "hardly any mutation gets far into " << target.name;
  }
}

TEST(Mutation, memory_stays_in_proportion_to_the_bytes) {
  if (!address_space_is_ours) GTEST_SKIP() << "needs a limit on the address space";
  constexpr size_t times = 96, count = 200000;
  auto many_of = [](const c10::IValue& item) {
    c10::impl::GenericList items(c10::AnyType::get());
    for (size_t i = 0; i < count; ++i) items.push_back(item);
    Graph graph;
    graph.set_outputs({call(
        graph, "aten::sum.dim_IntList",
        {graph.add_input(dense({2})), c10::IValue(items), c10::IValue(false), c10::IValue()}, dense({2}))});
    return graph;
  };
  std::vector<Graph> graphs = {many_of({}), many_of(1), many_of(""), many_of(number(true)),
                               many_of(c10::impl::GenericList(c10::AnyType::get()))};
  Graph& of_values = graphs.emplace_back();
  for (size_t i = 0; i < count; ++i) of_values.add_value(dense({}));
  Graph& of_nodes = graphs.emplace_back();
  const Value value = of_nodes.add_input(dense({}));
  for (size_t i = 0; i < count; ++i) call(of_nodes, "aten::relu", {value}, dense({}));
  for (const Graph& graph : graphs) {
    const std::string bytes = encode_graph(graph);
    const MemoryLimit limit(times * bytes.size());
    try {
      decode_graph(bytes);
    } catch (const Error&) {
      // Whether there is such a call is another question.
    }
  }
}
