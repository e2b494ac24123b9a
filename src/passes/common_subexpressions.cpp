#include "graph/spelling.h"
#include "ops/facts.h"
#include "ops/generator_state.h"
#include "ops/versions.h"

#include <tandem/passes.h>

#include <numeric>
#include <unordered_set>

namespace tandem {
namespace {

std::vector<Value> results_of(const Node& node) {
  std::vector<Value> values;
  for_each_result(node, [&](Value v) { values.push_back(v); });
  return values;
}

/// A text that two nodes share only if they compute the same of values with the same numbers; nothing for one
/// with a constant that has no text.
std::optional<std::string> text_of(const Node& node, const auto& number) {
  std::string text;
  bool spelled = true;
  auto refuse = [&](std::string&, const c10::IValue&) { spelled = false; };
  spell_call(text, node, number, refuse);
  return spelled ? std::optional(std::move(text)) : std::nullopt;
}

/// The same of two nodes of one phase.
std::optional<std::string> key_of(const Node& node) {
  std::optional<std::string> text = text_of(node, [](Value v) { return v.id; });
  if (text) spell(*text, 'p', int64_t(node.phase));
  return text;
}

/// Tells which nodes of the backward compute what the forward has computed too.
class RerunFinder {
 public:
  explicit RerunFinder(const Graph& graph) : number_(graph.value_count()) {
    std::iota(number_.begin(), number_.end(), 0);
  }

  /// Asked of every node in turn.
  bool include(const Node& node) {
    std::optional<std::string> text = text_of(node, [&](Value v) { return v ? number_[size_t(v.id)] : -1; });
    if (!text) return false;
    if (node.phase == Phase::Forward) return of_forward_.emplace(std::move(*text), results_of(node)), false;
    const auto found = of_forward_.find(*text);
    if (found == of_forward_.end()) return false;
    const std::vector<Value> results = results_of(node);
    const std::vector<Value>& earlier = found->second;
    // A draw may name the state that it leaves in one of the two alone, behind all that it makes.
    for (size_t i = 0; i < std::min(results.size(), earlier.size()); ++i)
      number_[size_t(results[i].id)] = earlier[i].id;
    return true;
  }

 private:
  std::vector<int32_t> number_;  ///< of what the backward makes again that of the forward's
  std::unordered_map<std::string, std::vector<Value>> of_forward_;
};

/// Tells which nodes may stand in for an equal one. Merging two values that leave the graph would make
/// outputs share memory that were apart.
class Mergeable {
 public:
  explicit Mergeable(const Graph& graph) : graph_(graph), pinned_(graph.value_count()) {
    for (Value v : graph.outputs())
      if (v) pin(v);
    for (const Node& node : graph.nodes())
      for (const auto& [before, after] : node.writes) pin(before);
  }

  bool operator()(const Node& node) const {
    const OpFacts& op = facts(node.op);
    if (op.random || op.side_effect || reads_generator(node.op) || is_foreign(node.op) ||
        !node.writes.empty() || !op.written.empty())
      return false;
    bool free = true;
    for_each_result(node, [&](Value v) {
      free = free && !pinned_[v.id] && (op.view || !storages_.contains(graph_.meta(v).storage));
    });
    return free;
  }

 private:
  void pin(Value v) {
    pinned_[v.id] = true;
    storages_.insert(graph_.meta(v).storage);
  }

  const Graph& graph_;
  std::vector<bool> pinned_;
  std::unordered_set<int32_t> storages_;
};

/// Views of a value that went name the memory of the one that stands in for it.
class MergedStorages {
 public:
  void merge(int32_t gone, int32_t kept) {
    gone = last(gone), kept = last(kept);
    if (gone != kept) kept_.emplace(gone, kept);
  }

  void rename(Graph& graph) const {
    if (kept_.empty()) return;
    for (size_t id = 0; id < graph.value_count(); ++id) {
      int32_t& storage = graph.meta(Value{int32_t(id)}).storage;
      storage = last(storage);
    }
  }

 private:
  /// The number that a storage has after all merges so far.
  int32_t last(int32_t storage) const {
    for (auto found = kept_.find(storage); found != kept_.end(); found = kept_.find(storage))
      storage = found->second;
    return storage;
  }

  std::unordered_map<int32_t, int32_t> kept_;  ///< by the number that went
};

}  // namespace

Graph eliminate_common_subexpressions(Graph graph, Reruns reruns) {
  std::optional<RerunFinder> apart;
  if (reruns == Reruns::Apart) apart.emplace(graph);
  const Mergeable mergeable(graph);
  std::vector<Value> replaced(graph.value_count());
  for (size_t i = 0; i < replaced.size(); ++i) replaced[i] = Value{int32_t(i)};
  std::unordered_map<std::string, std::vector<Value>> known;
  MergedStorages storages;

  std::erase_if(graph.nodes(), [&](Node& node) {
    map_arguments(node, [&](Value v) { return replaced[v.id]; });
    if (apart && apart->include(node)) return false;
    if (!mergeable(node)) return false;
    std::optional<std::string> key = key_of(node);
    if (!key) return false;
    auto [first, is_new] = known.try_emplace(std::move(*key));
    std::vector<Value> results = results_of(node);
    if (is_new) {
      first->second = std::move(results);
      return false;
    }
    for (size_t i = 0; i < results.size(); ++i) {
      replaced[results[i].id] = first->second[i];
      storages.merge(graph.meta(results[i]).storage, graph.meta(first->second[i]).storage);
    }
    return true;
  });
  storages.rename(graph);
  return graph;
}

}  // namespace tandem
