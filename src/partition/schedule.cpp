#include "partition/schedule.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/draws.h"
#include "graph/uses.h"
#include "ops/facts.h"
#include "ops/generator_state.h"
#include "ops/versions.h"
#include "partition/peak.h"

namespace tandem {
namespace {

/// How many of the next nodes, in the order of the record, may run first.
constexpr size_t window = 16;
/// Another order is only taken when it lowers the peak by so much.
constexpr double least_lowering = 0.01;

/// Goes through a graph and always runs that one of the next few nodes which lets the memory grow least.
class Scheduler {
 public:
  Scheduler(const Graph& graph, const std::vector<std::pair<Value, int64_t>>& given)
      : graph_(graph), memory_of_(graph.value_count()), waits_for_(size()), readers_(size()) {
    find_memory(given);
    find_waiting();
  }

  std::vector<size_t> order() {
    std::vector<size_t> order, next;  // next: the first nodes that have not run, in the order of the record
    size_t unseen = 0;
    while (order.size() < size()) {
      while (next.size() < window && unseen < size()) next.push_back(unseen++);
      const size_t chosen = least_growing(next);
      order.push_back(next[chosen]);
      run(next[chosen]);
      next.erase(next.begin() + int64_t(chosen));
    }
    return order;
  }

 private:
  size_t size() const { return graph_.nodes().size(); }

  void find_memory(const std::vector<std::pair<Value, int64_t>>& given) {
    std::unordered_map<int32_t, int32_t> by_storage;
    for (size_t id = 0; id < memory_of_.size(); ++id) {
      const TensorMeta& meta = graph_.meta(Value{int32_t(id)});
      const int32_t fresh = int32_t(bytes_.size());
      memory_of_[id] = meta.storage < 0 ? fresh : by_storage.try_emplace(meta.storage, fresh).first->second;
      if (memory_of_[id] == fresh) bytes_.push_back(0);
      int64_t& bytes = bytes_[size_t(memory_of_[id])];
      bytes = std::max(bytes, meta.storage_bytes());
    }
    is_there_.resize(bytes_.size());
    reads_left_.resize(bytes_.size());
    auto belongs_to_others = [&](Value v) {
      is_there_[memory(v)] = true;
      bytes_[memory(v)] = 0;
    };
    for (Value v : graph_.inputs()) belongs_to_others(v);
    for (const auto& constant : graph_.constants()) belongs_to_others(constant.first);
    for (const auto& [input, bytes] : given) bytes_[memory(input)] = bytes;
    for (const Node& node : graph_.nodes())
      for (size_t read : touched(node)) ++reads_left_[read];
    for (Value v : graph_.outputs())
      if (v) ++reads_left_[memory(v)];
  }

  size_t memory(Value v) const { return size_t(memory_of_[size_t(v.id)]); }

  /// The memory of what a node reads and makes, each once.
  c10::SmallVector<size_t, 8> touched(const Node& node) const {
    c10::SmallVector<size_t, 8> found;
    auto add = [&](Value v) {
      if (std::find(found.begin(), found.end(), memory(v)) == found.end()) found.push_back(memory(v));
    };
    for_each_argument(node, add);
    for_each_result(node, add);
    return found;
  }

  void find_waiting() {
    const std::vector<int32_t> maker = makers(graph_);
    std::unordered_set<int32_t> written;
    for (const Node& node : graph_.nodes())
      for (const auto& [before, after] : node.writes) written.insert(memory_of_[size_t(before.id)]);
    int32_t last_in_place = no_node;
    for (size_t n = 0; n < size(); ++n) {
      const Node& node = graph_.nodes()[n];
      auto wait = [&](int32_t other) {
        if (other == no_node || other == int32_t(n)) return;
        readers_[size_t(other)].push_back(int32_t(n));
        ++waits_for_[n];
      };
      for_each_argument(node, [&](Value v) { wait(maker[size_t(v.id)]); });
      if (!keeps_its_place(node, written)) continue;
      wait(last_in_place);
      last_in_place = int32_t(n);
    }
  }

  bool keeps_its_place(const Node& node, const std::unordered_set<int32_t>& written) const {
    if (facts(node.op).side_effect || is_foreign(node.op) || draws_live(node) || reads_generator(node.op))
      return true;
    bool meets_a_write = false;
    for (size_t memory : touched(node)) meets_a_write = meets_a_write || written.contains(int32_t(memory));
    return meets_a_write;
  }

  size_t least_growing(const std::vector<size_t>& next) const {
    size_t best = next.size();
    int64_t least = 0;
    for (size_t i = 0; i < next.size(); ++i) {
      if (waits_for_[next[i]] > 0) continue;
      const int64_t grows = growth(next[i]);
      if (best == next.size() || grows < least) best = i, least = grows;
    }
    return best;
  }

  int64_t growth(size_t n) const {
    int64_t bytes = 0;
    for (size_t memory : touched(graph_.nodes()[n])) {
      if (!is_there_[memory]) bytes += bytes_[memory];
      if (reads_left_[memory] == 1) bytes -= bytes_[memory];
    }
    return bytes;
  }

  void run(size_t n) {
    for (size_t memory : touched(graph_.nodes()[n])) {
      is_there_[memory] = true;
      --reads_left_[memory];
    }
    for (int32_t reader : readers_[n]) --waits_for_[size_t(reader)];
  }

  const Graph& graph_;
  std::vector<int32_t> memory_of_;  ///< of each value
  // Of each stretch of memory: none of what somebody else holds.
  std::vector<int64_t> bytes_;
  std::vector<bool> is_there_;
  std::vector<int32_t> reads_left_;  ///< nodes that touch it, and outputs
  // Of each node:
  std::vector<int32_t> waits_for_;
  std::vector<std::vector<int32_t>> readers_;
};

/// Puts the node that `order` names first to the front, and so on; nodes are moved, not copied.
void reorder(Graph& graph, const std::vector<size_t>& order) {
  std::vector<Node> nodes;
  nodes.reserve(order.size());
  for (size_t n : order) nodes.push_back(std::move(graph.nodes()[n]));
  graph.nodes() = std::move(nodes);
}

std::vector<size_t> inverse(const std::vector<size_t>& order) {
  std::vector<size_t> places(order.size());
  for (size_t i = 0; i < order.size(); ++i) places[order[i]] = i;
  return places;
}

bool is_worth_it(int64_t peak, int64_t before) {
  return double(peak) < double(before) * (1 - least_lowering);
}

}  // namespace

Partition scheduled(Partition halves) {
  const Peaks before = predicted_peaks(halves);
  const std::vector<size_t> forward = Scheduler(halves.forward, {}).order(),
                            backward = Scheduler(halves.backward, given_to_backward(halves)).order();
  reorder(halves.forward, forward);
  reorder(halves.backward, backward);
  const Peaks behind = predicted_peaks(halves);
  if (!is_worth_it(behind.forward, before.forward)) reorder(halves.forward, inverse(forward));
  if (!is_worth_it(behind.backward, before.backward)) reorder(halves.backward, inverse(backward));
  return halves;
}

}  // namespace tandem
