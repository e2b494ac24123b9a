#include "partition/schedule.h"

#include <algorithm>
#include <limits>
#include <utility>

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
/// Limits for orders: nothing may be alive, or anything.
constexpr int64_t nothing = std::numeric_limits<int64_t>::min(),
                  anything = std::numeric_limits<int64_t>::max();

struct Order {
  std::vector<size_t> nodes;
  int64_t highest, live;  ///< bytes that are alive at once, and behind all
};

class Scheduler {
 public:
  /// `live`: bytes that are alive before.
  Scheduler(const Graph& graph, const GivenBytes& given, int64_t live)
      : graph_(graph),
        footprint_(graph, given),
        live_(live),
        waits_for_(size()),
        first_reader_(size(), none) {
    find_waiting();
  }

  /// The next node of the record runs as long as no more than a limit is alive then, else that one of the
  /// next few nodes which lets the memory grow least.
  Order order(int64_t limit) const {
    Occupancy occupancy(footprint_, live_);
    std::vector<int32_t> waits_for = waits_for_;
    std::vector<size_t> order, next;  // next: the first nodes that have not run, in the order of the record
    order.reserve(size());
    size_t unseen = 0;
    while (order.size() < size()) {
      while (next.size() < window && unseen < size()) next.push_back(unseen++);
      const size_t chosen = choose(next, waits_for, occupancy, limit), node = next[chosen];
      order.push_back(node);
      occupancy.run(node);
      for (int32_t e = first_reader_[node]; e != none; e = waiting_[size_t(e)].next)
        --waits_for[size_t(waiting_[size_t(e)].node)];
      next.erase(next.begin() + int64_t(chosen));
    }
    return {std::move(order), occupancy.highest(), occupancy.live()};
  }

 private:
  static constexpr int32_t none = -1;
  /// Waits for another node; `next`: the next that waits for the same.
  struct Waiting {
    int32_t node, next;
  };

  size_t size() const { return graph_.nodes().size(); }

  /// The first that has not run waits for nothing.
  static size_t choose(const std::vector<size_t>& next, const std::vector<int32_t>& waits_for,
                       const Occupancy& occupancy, int64_t limit) {
    size_t best = 0;
    const Occupancy::Change first = occupancy.change(next[0]);
    if (occupancy.live() + first.most <= limit) return best;
    int64_t least = first.grows;
    for (size_t i = 1; i < next.size(); ++i) {
      if (waits_for[next[i]] > 0) continue;
      if (const int64_t grows = occupancy.change(next[i]).grows; grows < least) best = i, least = grows;
    }
    return best;
  }

  void find_waiting() {
    const std::vector<int32_t> maker = makers(graph_);
    std::vector<bool> written(footprint_.count());
    for (const Node& node : graph_.nodes())
      for (const auto& [before, after] : node.writes) written[footprint_.stretch(before)] = true;
    int32_t last_in_place = no_node;
    for (size_t n = 0; n < size(); ++n) {
      for_each_argument(graph_.nodes()[n], [&](Value v) { wait(n, maker[size_t(v.id)]); });
      if (!keeps_its_place(n, written)) continue;
      wait(n, last_in_place);
      last_in_place = int32_t(n);
    }
  }

  void wait(size_t n, int32_t other) {
    if (other == no_node || other == int32_t(n)) return;
    waiting_.push_back({int32_t(n), std::exchange(first_reader_[size_t(other)], int32_t(waiting_.size()))});
    ++waits_for_[n];
  }

  bool keeps_its_place(size_t n, const std::vector<bool>& written) const {
    const Node& node = graph_.nodes()[n];
    if (facts(node.op).side_effect || is_foreign(node.op) || draws_live(node) || reads_generator(node.op))
      return true;
    const auto touched = footprint_.touched(n);
    return std::any_of(touched.begin(), touched.end(), [&](uint32_t stretch) { return written[stretch]; });
  }

  const Graph& graph_;
  const Footprint footprint_;
  const int64_t live_;
  // Of each node:
  std::vector<int32_t> waits_for_, first_reader_;
  std::vector<Waiting> waiting_;
};

/// Puts the node that `order` names first to the front, and so on; nodes are moved, not copied.
void reorder(Graph& graph, const std::vector<size_t>& order) {
  std::vector<Node> nodes;
  nodes.reserve(order.size());
  for (size_t n : order) nodes.push_back(std::move(graph.nodes()[n]));
  graph.nodes() = std::move(nodes);
}

bool is_lower(const Order& order, const Order& other) {
  return double(order.highest) < double(other.highest) * (1 - least_lowering);
}

/// Takes the order that lowers the peak most, or one that lowers it as far and is nearer to the record, where
/// neighbours read what caches still hold. Returns the bytes that are alive behind it.
int64_t settle(Graph& half, const GivenBytes& given, int64_t live) {
  const Scheduler scheduler(half, given, live);
  const Order recorded = scheduler.order(anything), lowest = scheduler.order(nothing);
  if (!is_lower(lowest, recorded)) return recorded.live;
  const Order nearest = scheduler.order(lowest.highest);
  reorder(half, (is_lower(lowest, nearest) ? lowest : nearest).nodes);
  return recorded.live;
}

}  // namespace

Partition scheduled(Partition halves) {
  const int64_t live = settle(halves.forward, {}, 0);
  settle(halves.backward, given_to_backward(halves), live);
  return halves;
}

}  // namespace tandem
