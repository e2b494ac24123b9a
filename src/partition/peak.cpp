// The memory of a step, predicted: what an interpreter of both halves holds when.
#include "partition/peak.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "graph/in_place_adds.h"
#include "graph/uses.h"
#include "partition/workspace.h"

namespace tandem {
namespace {

/// A graph that is gone through node by node, each stretch of memory freed behind the last node that reads
/// it.
class Walk {
 public:
  explicit Walk(const Graph& graph) : graph_(graph) {
    find_homes();
    for (Value v : graph.inputs()) is_held_[home(v)] = true;
    for (const auto& constant : graph.constants()) is_held_[home(constant.first)] = true;
    find_sizes_and_ends();
  }

  /// An input that nobody else holds: its memory is free when nothing reads it any more.
  void give(Value input, int64_t bytes) { freed_[home(input)] = bytes; }

  /// Adds what is made to `live`, takes away what is freed, and returns the highest number in between.
  int64_t run(int64_t& live) {
    int64_t highest = live;
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      for_each_result(graph_.nodes()[n], [&](Value v) {
        const size_t at = home(v);
        if (is_held_[at]) return;
        is_held_[at] = true;
        live += freed_[at] = sizes_[at];
      });
      highest = std::max(highest, live + workspace_bytes(graph_, graph_.nodes()[n]));
      for (size_t i = first_ending_[n]; i < first_ending_[n + 1]; ++i) live -= freed_[endings_[i]];
    }
    return highest;
  }

  int64_t bytes(Value v) const { return sizes_[home(v)]; }

  /// Which stretch of memory a value lies in.
  size_t home(Value v) const { return size_t(homes_[size_t(v.id)]); }

 private:
  /// Values of one storage have one home, those of unknown storage one of their own; a sum in place lies
  /// where its operand lay.
  void find_homes() {
    std::unordered_map<int32_t, int32_t> by_storage;
    const InPlaceAdds adds(graph_, last_reads(graph_));
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      if (const auto target = adds.target(n)) {
        const Node& node = graph_.nodes()[n];
        const Value sum = std::get<Value>(node.results[0]);
        if (graph_.meta(sum).storage >= 0)
          by_storage[graph_.meta(sum).storage] =
              home_of(std::get<Value>(node.arguments[*target]), by_storage);
      }
    homes_.resize(graph_.value_count());
    for (size_t id = 0; id < homes_.size(); ++id) homes_[id] = home_of(Value{int32_t(id)}, by_storage);
    is_held_.resize(count_);
    sizes_.resize(count_);
    freed_.resize(count_);
  }

  int32_t home_of(Value v, std::unordered_map<int32_t, int32_t>& by_storage) {
    const int32_t storage = graph_.meta(v).storage;
    if (storage < 0) return count_++;
    const auto [found, is_new] = by_storage.try_emplace(storage, count_);
    if (is_new) ++count_;
    return found->second;
  }

  void find_sizes_and_ends() {
    std::vector<int32_t> ends(sizes_.size(), no_node);
    auto see = [&](Value v, size_t at) {
      int64_t& size = sizes_[home(v)];
      size = std::max(size, graph_.meta(v).storage_bytes());
      ends[home(v)] = int32_t(at);
    };
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      for_each_argument(graph_.nodes()[n], [&](Value v) { see(v, n); });
      for_each_result(graph_.nodes()[n], [&](Value v) { see(v, n); });
    }
    for (Value v : graph_.outputs())
      if (v) see(v, graph_.nodes().size());
    first_ending_.resize(graph_.nodes().size() + 2);
    for (int32_t end : ends) first_ending_[size_t(end + 1)] += end >= 0 ? 1 : 0;
    std::partial_sum(first_ending_.begin(), first_ending_.end(), first_ending_.begin());
    endings_.resize(sizes_.size());
    std::vector<size_t> next = first_ending_;
    for (size_t at = 0; at < ends.size(); ++at)
      if (ends[at] >= 0) endings_[next[size_t(ends[at])]++] = at;
  }

  const Graph& graph_;
  int32_t count_ = 0;
  std::vector<int32_t> homes_;  ///< of each value
  // Of each home:
  std::vector<bool> is_held_;
  std::vector<int64_t> sizes_, freed_;  ///< freed: bytes that are free where it ends
  /// The homes that end at each node, one node's behind the other's, and where each node's begin.
  std::vector<size_t> endings_, first_ending_;
};

}  // namespace

Peaks predicted_peaks(const Partition& halves) {
  Walk forward(halves.forward), backward(halves.backward);
  Peaks peaks;
  int64_t live = 0;
  peaks.forward = forward.run(live);
  for (const auto& [input, bytes] : given_to_backward(halves)) backward.give(input, bytes);
  peaks.backward = backward.run(live);
  return peaks;
}

std::vector<std::pair<Value, int64_t>> given_to_backward(const Partition& halves) {
  const Graph& forward = halves.forward;
  std::unordered_set<int32_t> of_caller;
  for (Value v : forward.inputs()) of_caller.insert(forward.meta(v).storage);
  for (size_t i = 0; i + halves.saved.size() < forward.outputs().size(); ++i)
    if (Value result = forward.outputs()[i]) of_caller.insert(forward.meta(result).storage);
  std::unordered_map<int32_t, int64_t> sizes;
  for (size_t id = 0; id < forward.value_count(); ++id) {
    const TensorMeta& meta = forward.meta(Value{int32_t(id)});
    int64_t& size = sizes[meta.storage];
    size = std::max(size, meta.storage_bytes());
  }
  std::vector<std::pair<Value, int64_t>> given;
  for (size_t i = 0; i < halves.saved.size(); ++i) {
    const TensorMeta& meta = forward.meta(halves.saved[i]);
    const bool is_alone = meta.storage < 0;
    if (is_alone || of_caller.insert(meta.storage).second)
      given.emplace_back(halves.backward.inputs()[i], is_alone ? meta.storage_bytes() : sizes[meta.storage]);
  }
  return given;
}

int64_t predicted_peak_bytes(const Partition& halves) {
  const Peaks peaks = predicted_peaks(halves);
  return std::max(peaks.forward, peaks.backward);
}

}  // namespace tandem
