#include "loops/groups.h"

#include <algorithm>

#include "loops/cost.h"
#include "loops/dependences.h"
#include "loops/lending.h"
#include "loops/pieces.h"
#include "ops/facts.h"

namespace tandem::loops {
namespace {

/// With more, a kernel's values no longer fit the registers, and compiling takes long.
constexpr size_t most_members = 96;
/// Groups that read the same memory and were made last are the ones that are tried.
constexpr size_t most_siblings = 4;

class Grouping {
 public:
  Grouping(const Graph& graph, int64_t threads)
      : graph_(graph),
        candidates_(graph, threads),
        followers_(followers(graph, candidates_.all_for_loops())),
        group_of_(graph.nodes().size(), -1),
        loaded_by_(graph.value_count()) {}

  std::vector<Members> run() {
    for (now_ = 0; now_ < int32_t(group_of_.size()); ++now_) {
      libraries_before_.push_back(libraries_);
      if (candidates_.is_for_loops(now_))
        place(now_);
      else if (!facts(nodes()[size_t(now_)].op).view)
        ++libraries_;
    }
    std::vector<Members> made;
    for (Candidate& candidate : groups_)
      if (!candidate.members.empty() && !only_moves(candidate.fused))
        made.push_back({std::move(candidate.members), {}});
    return made;
  }

 private:
  const std::vector<Node>& nodes() const { return graph_.nodes(); }

  void place(int32_t node) {
    std::optional<Candidate> alone = candidates_.candidate({node});
    if (!alone) return;
    groups_.push_back(std::move(*alone));
    set_group(int32_t(groups_.size()) - 1);
    join_producers(node);
    for (int32_t sibling : siblings(node)) try_to_join(sibling);
  }

  /// Who makes pieces may have waited for the group that puts all of them together.
  void join_producers(int32_t node) {
    std::vector<int32_t> all = producers(node);
    for (size_t i = 0; i < all.size(); ++i) {
      const int32_t producer = all[i];
      if (!try_to_join(producer) || !has_pieces(nodes()[size_t(producer)].op)) continue;
      const std::vector<int32_t> makers = producers(producer);
      all.insert(all.end(), makers.begin(), makers.end());
    }
  }

  void set_group(int32_t group) {
    for (int32_t member : groups_[size_t(group)].members) group_of_[size_t(member)] = group;
    for (Value input : groups_[size_t(group)].fused.inputs) {
      auto& all = loaded_by_[input.id];
      if (std::find(all.begin(), all.end(), group) == all.end()) all.push_back(group);
    }
  }

  std::vector<int32_t> producers(int32_t node) const {
    std::vector<int32_t> found;
    for_each_argument(nodes()[size_t(node)], [&](Value v) {
      const int32_t maker = candidates_.maker(v);
      if (maker >= 0 && group_of_[size_t(maker)] >= 0) found.push_back(maker);
    });
    std::sort(found.rbegin(), found.rend());
    return found;
  }

  /// Members of groups that read what this node reads.
  std::vector<int32_t> siblings(int32_t node) const {
    std::vector<int32_t> found;
    for_each_argument(nodes()[size_t(node)], [&](Value v) {
      const auto& all = loaded_by_[candidates_.anchor(v).id];
      size_t tried = 0;
      for (auto group = all.rbegin(); group != all.rend() && tried < most_siblings; ++group)
        if (!groups_[size_t(*group)].members.empty())
          found.push_back(groups_[size_t(*group)].members.front()), ++tried;
    });
    return found;
  }

  /// Whether the group of the node that is being placed has taken in another member's.
  bool try_to_join(int32_t member) {
    const int32_t into = group_of_[size_t(now_)], other = group_of_[size_t(member)];
    if (into == other || other < 0) return false;
    Candidate &a = groups_[size_t(other)], &b = groups_[size_t(into)];
    if (a.members.size() + b.members.size() > most_members || leads_back(other, into)) return false;
    std::optional<Candidate> joined = candidates_.candidate(merged(a.members, b.members));
    if (!joined || joined->time > a.time + b.time || waits_for_more(a, *joined)) return false;
    b = std::move(*joined);
    a.members.clear();
    set_group(into);
    return true;
  }

  /// Whether a group that runs later keeps more in memory until then than it has to store: one that adds up
  /// what a library makes in between.
  bool waits_for_more(const Candidate& earlier, const Candidate& joined) const {
    if (libraries_before_[size_t(earlier.members.back())] == libraries_) return false;
    int64_t freed = 0, stored = 0;
    for (Value input : earlier.fused.inputs) {
      const auto& readers = candidates_.readers(input);
      const bool is_last = std::all_of(readers.begin(), readers.end(), [&](int32_t reader) {
        return std::binary_search(earlier.members.begin(), earlier.members.end(), reader);
      });
      if (candidates_.maker(input) >= 0 && !candidates_.is_kept(input) && is_last)
        freed += graph_.meta(input).storage_bytes();
    }
    for (Value output : earlier.fused.outputs)
      if (std::find(joined.fused.outputs.begin(), joined.fused.outputs.end(), output) ==
          joined.fused.outputs.end())
        stored += graph_.meta(output).storage_bytes();
    return freed > stored;
  }

  /// Whether something outside of two groups follows one of them and is followed by one.
  bool leads_back(int32_t first, int32_t second) {
    ++visit_;
    visited_.resize(nodes().size(), 0);
    std::vector<int32_t> pending;
    auto visit = [&](int32_t node) {
      if (node > now_ || visited_[size_t(node)] == visit_) return;
      visited_[size_t(node)] = visit_;
      pending.push_back(node);
    };
    auto is_inside = [&](int32_t node) {
      const int32_t group = group_of_[size_t(node)];
      return group == first || group == second;
    };
    for (int32_t group : {first, second})
      for (int32_t member : groups_[size_t(group)].members)
        for (int32_t follower : followers_[size_t(member)])
          if (!is_inside(follower)) visit(follower);
    while (!pending.empty()) {
      const int32_t node = pending.back(), group = group_of_[size_t(node)];
      pending.pop_back();
      if (is_inside(node)) return true;
      for (int32_t follower : followers_[size_t(node)]) visit(follower);
      if (group >= 0)
        for (int32_t member : groups_[size_t(group)].members) visit(member);
    }
    return false;
  }

  const Graph& graph_;
  const Candidates candidates_;
  const std::vector<std::vector<int32_t>> followers_;
  std::vector<int32_t> group_of_;                ///< of each node; -1: none
  std::vector<std::vector<int32_t>> loaded_by_;  ///< groups that read an anchor
  std::vector<Candidate> groups_;
  std::vector<int32_t> visited_;
  std::vector<int32_t> libraries_before_;  ///< how many calls of libraries stand before each node
  int32_t visit_ = 0, now_ = 0, libraries_ = 0;
};

/// Whether these are nodes that loops can compute, each of them of one group at most, and those that others
/// compute again read the same there.
bool fit(const Candidates& candidates, const std::vector<Members>& members) {
  std::vector<bool> is_taken(candidates.nodes().size());
  for (const auto& [own, borrowed] : members) {
    for (int32_t node : own) {
      if (size_t(node) >= is_taken.size() || !candidates.is_for_loops(node) || is_taken[size_t(node)])
        return false;
      is_taken[size_t(node)] = true;
    }
    for (int32_t node : borrowed)
      if (size_t(node) >= is_taken.size() || !candidates.is_for_loops(node) ||
          candidates.reads_written_memory(node))
        return false;
    if (own.empty() || (!borrowed.empty() && borrowed.back() >= own.back())) return false;
  }
  return true;
}

}  // namespace

std::vector<Group> groups(const Graph& graph, int64_t threads) {
  const std::vector<Members> apart = Grouping(graph, threads).run();
  const Candidates candidates(graph, threads);
  if (auto made = groups_of(graph, threads, lend(candidates, apart))) return std::move(*made);
  return groups_of(graph, threads, apart).value();
}

std::optional<std::vector<Group>> groups_of(const Graph& graph, int64_t threads,
                                            const std::vector<Members>& members) {
  const Candidates candidates(graph, threads);
  if (!fit(candidates, members)) return std::nullopt;
  const Division division(candidates, members);
  std::vector<Group> made;
  for (size_t group = 0; group < members.size(); ++group) {
    made.push_back({members[group], {}});
    if (division.stored(int32_t(group)).empty()) continue;
    std::optional<Candidate> candidate = division.candidate(int32_t(group));
    if (!candidate) return std::nullopt;
    made.back().fused = std::move(candidate->fused);
  }
  return made;
}

}  // namespace tandem::loops
