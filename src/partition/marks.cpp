#include "partition/marks.h"

#include <tandem/passes.h>

#include <unordered_map>
#include <unordered_set>

#include "graph/draws.h"
#include "graph/uses.h"
#include "ops/generator_state.h"
#include "ops/marks.h"
#include "partition/computation_keys.h"

namespace tandem {
namespace {

using Storages = std::unordered_set<int32_t>;

/// The joint with the forward's draws as functions of states, each of the one that the draw before it left:
/// so a checkpoint has recorded those that it draws again.
Joint with_draws_as_functions(Joint joint) {
  Graph& graph = joint.graph;
  std::unordered_map<int32_t, Value> same;
  Value state;  // of the CPU's generator, where it is known
  for (Node& node : graph.nodes()) {
    map_arguments(node, [&](Value v) { return same.contains(v.id) ? same.at(v.id) : v; });
    if (node.phase != Phase::Forward) continue;
    const bool reads = reads_generator(node.op);
    if (!reads && !draws_live(node)) continue;
    if (own_generator(node).isGenerator() || (!reads && !drawn_on(graph, node).is_cpu())) continue;
    if (reads) {
      const Value read = std::get<Value>(node.results[0]);
      if (!std::get<c10::IValue>(node.arguments[0]).toDevice().is_cpu()) continue;
      if (state) same.emplace(read.id, state);
      if (!state) state = read;
      continue;
    }
    const Value before = state;
    state = before ? graph.add_value(state_meta(graph, c10::kCPU)) : Value{};
    node.state = before;
    node.next_state = state;
  }
  return joint;
}

class ReadsOfForward {
 public:
  ReadsOfForward(Joint& joint, const std::vector<Value>& marked, const std::vector<Value>& computed_again)
      : graph_(joint.graph), keys_(ComputationKeys(/*apart=*/false).of(with_draws_as_functions(joint))) {
    Storages unfit = storages_of_caller(graph_, graph_.outputs().size());
    for (const Node& node : graph_.nodes())
      for (const auto& [before, after] : node.writes) unfit.insert(storage(before));
    Storages kept;
    for (Value v : marked)
      if (!unfit.contains(storage(v))) kept.insert(storage(v));
    for (const Node& node : graph_.nodes())
      if (node.phase == Phase::Forward)
        for_each_result(node, [&](Value v) {
          if (kept.contains(storage(v))) made_.emplace(key(v), v);
        });
    for (Value v : computed_again)
      if (made_.contains(key(v)) && !unfit.contains(storage(v)))
        renamed_.emplace(storage(v), storage(made_.at(key(v))));
  }

  void put() {
    std::unordered_map<int32_t, Value> instead;
    for (Node& node : graph_.nodes()) {
      if (node.phase != Phase::Backward) continue;
      map_arguments(node, [&](Value v) { return instead.contains(v.id) ? instead.at(v.id) : v; });
      for_each_result(node, [&](Value v) {
        if (renamed_.contains(storage(v)) && made_.contains(key(v))) instead.emplace(v.id, made_.at(key(v)));
      });
    }
    std::vector<Value> outputs = graph_.outputs();
    for (Value& v : outputs)
      if (v && instead.contains(v.id)) v = instead.at(v.id);
    graph_.set_outputs(std::move(outputs));
    for (size_t id = 0; id < graph_.value_count(); ++id) {
      TensorMeta& meta = graph_.meta(Value{int32_t(id)});
      if (auto found = renamed_.find(meta.storage); found != renamed_.end() && !instead.contains(int32_t(id)))
        meta.storage = found->second;
    }
  }

 private:
  int32_t storage(Value v) const { return graph_.meta(v).storage; }
  uint64_t key(Value v) const { return keys_[size_t(v.id)]; }

  Graph& graph_;
  const std::vector<uint64_t> keys_;
  std::unordered_map<uint64_t, Value> made_;      ///< in marked memory of the forward, by how it is computed
  std::unordered_map<int32_t, int32_t> renamed_;  ///< storages of the backward that hold the same
};

Storages memory_of(const Graph& graph, const std::vector<Value>& values) {
  Storages storages;
  for (Value v : values) storages.insert(graph.meta(v).storage);
  storages.erase(-1);
  return storages;
}

}  // namespace

Marks take_marks(Joint& joint) {
  Marks marks;
  std::vector<Value> computed_again;
  const size_t erased = std::erase_if(joint.graph.nodes(), [&](const Node& node) {
    const bool must_save = node.op == must_save_operator();
    if (!must_save && !(node.op == prefer_recompute_operator())) return false;
    const Value marked = std::get<Value>(node.arguments[0]);
    if (node.phase == Phase::Forward)
      (must_save ? marks.must_save : marks.prefer_recompute).push_back(marked);
    else if (must_save)
      computed_again.push_back(marked);
    return true;
  });
  if (erased == 0) return marks;
  if (!marks.must_save.empty() && !computed_again.empty())
    ReadsOfForward(joint, marks.must_save, computed_again).put();
  joint.graph = eliminate_dead_code(std::move(joint.graph));
  return marks;
}

std::vector<Value> made_in_memory_of(const Graph& graph, const std::vector<Value>& marked) {
  const Storages storages = memory_of(graph, marked);
  std::vector<Value> found;
  for (const Node& node : graph.nodes())
    if (node.phase == Phase::Forward && !storages.empty())
      for_each_result(node, [&](Value v) {
        if (storages.contains(graph.meta(v).storage)) found.push_back(v);
      });
  return found;
}

std::vector<size_t> places_made_with(const std::vector<Value>& values, const Partition& halves) {
  const Storages storages = memory_of(halves.forward, values);
  std::unordered_set<int32_t> made;
  for (const Node& node : halves.forward.nodes()) {
    bool is_one = false;
    for_each_result(node,
                    [&](Value v) { is_one = is_one || storages.contains(halves.forward.meta(v).storage); });
    if (is_one) for_each_result(node, [&](Value v) { made.insert(v.id); });
  }
  std::vector<size_t> found;
  for (size_t i = 0; i < halves.saved.size(); ++i)
    if (made.contains(halves.saved[i].id)) found.push_back(i);
  return found;
}

}  // namespace tandem
