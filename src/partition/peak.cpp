// The memory of a step, predicted: what an interpreter of both halves holds when.
#include <tandem/partition.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/in_place_adds.h"
#include "graph/uses.h"

namespace tandem {
namespace {

/// A graph that is gone through node by node, each storage freed behind the last node that reads it.
class Walk {
 public:
  explicit Walk(const Graph& graph) : graph_(graph) {
    find_homes();
    for (Value v : graph.inputs()) held_.emplace(home(v), 0);
    for (const auto& constant : graph.constants()) held_.emplace(home(constant.first), 0);
    find_sizes_and_ends();
  }

  /// An input that nobody else holds: its memory is free when nothing reads it any more.
  void give(Value input, int64_t bytes) { held_[home(input)] = bytes; }

  /// Adds what is made to `live`, takes away what is freed, and returns the highest number in between.
  int64_t run(int64_t& live) {
    int64_t highest = live;
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      for_each_result(graph_.nodes()[n], [&](Value v) {
        if (held_.emplace(home(v), bytes(v)).second) live += bytes(v);
      });
      highest = std::max(highest, live);
      for (int32_t storage : ending_at_[n]) live -= held_[storage];
    }
    return highest;
  }

  int64_t bytes(Value v) { return sizes_[home(v)]; }

  int32_t home(Value v) const {
    int32_t storage = storage_of(v);
    for (auto next = homes_.find(storage); next != homes_.end(); next = homes_.find(storage))
      storage = next->second;
    return storage;
  }

 private:
  /// Values of unknown storage have one of their own.
  int32_t storage_of(Value v) const {
    const int32_t storage = graph_.meta(v).storage;
    return storage >= 0 ? storage : -2 - v.id;
  }

  /// A sum in place lies where its operand lay.
  void find_homes() {
    const InPlaceAdds adds(graph_, last_reads(graph_));
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      if (const auto target = adds.target(n)) {
        const Node& node = graph_.nodes()[n];
        homes_[storage_of(std::get<Value>(node.results[0]))] =
            storage_of(std::get<Value>(node.arguments[*target]));
      }
  }

  void find_sizes_and_ends() {
    std::unordered_map<int32_t, size_t> ends;
    auto see = [&](Value v, size_t at) {
      int64_t& size = sizes_[home(v)];
      size = std::max(size, graph_.meta(v).storage_bytes());
      size_t& end = ends[home(v)];
      end = std::max(end, at);
    };
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      for_each_argument(graph_.nodes()[n], [&](Value v) { see(v, n); });
      for_each_result(graph_.nodes()[n], [&](Value v) { see(v, n); });
    }
    for (Value v : graph_.outputs())
      if (v) see(v, graph_.nodes().size());
    ending_at_.resize(graph_.nodes().size() + 1);
    for (const auto& [storage, end] : ends) ending_at_[end].push_back(storage);
  }

  const Graph& graph_;
  std::unordered_map<int32_t, int32_t> homes_;
  std::unordered_map<int32_t, int64_t> sizes_, held_;  ///< held: what is freed where a storage ends
  std::vector<std::vector<int32_t>> ending_at_;
};

}  // namespace

int64_t predicted_peak_bytes(const Partition& halves) {
  Walk forward(halves.forward), backward(halves.backward);
  int64_t live = 0;
  const int64_t highest = forward.run(live);
  std::unordered_set<int32_t> of_caller;
  for (Value v : halves.forward.inputs()) of_caller.insert(forward.home(v));
  for (size_t i = 0; i + halves.saved.size() < halves.forward.outputs().size(); ++i)
    if (Value result = halves.forward.outputs()[i]) of_caller.insert(forward.home(result));
  // Each storage is given with the first value in it: views of it live in one storage of the backward too.
  for (size_t i = 0; i < halves.saved.size(); ++i)
    if (const Value v = halves.saved[i]; of_caller.insert(forward.home(v)).second)
      backward.give(halves.backward.inputs()[i], forward.bytes(v));
  return std::max(highest, backward.run(live));
}

}  // namespace tandem
