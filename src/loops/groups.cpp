#include "loops/groups.h"

#include <algorithm>

#include "graph/uses.h"
#include "loops/anchors.h"
#include "loops/arrange.h"
#include "loops/cost.h"
#include "loops/dependences.h"

namespace tandem::loops {
namespace {

/// Beyond these a kernel's values and pointers no longer fit the registers, and compiling takes long.
constexpr size_t most_members = 96, most_buffers = 28;
/// Groups that read the same memory and were made last are the ones that are tried.
constexpr size_t most_siblings = 4;

struct Candidate {
  std::vector<int32_t> members;
  Fused fused;
  double time = 0;
};

/// A graph, who reads what in it, and what groups of its nodes would be.
class Candidates {
 public:
  Candidates(const Graph& graph, int64_t threads)
      : graph_(graph),
        threads_(threads),
        anchors_(anchors(graph)),
        makers_(makers(graph)),
        is_for_loops_(for_loops(graph)),
        source_{graph_, anchors_, makers_},
        readers_(graph.value_count()),
        is_kept_(graph.value_count()) {
    find_readers();
  }

  bool is_for_loops(int32_t node) const { return is_for_loops_[size_t(node)]; }
  const std::vector<bool>& all_for_loops() const { return is_for_loops_; }
  Value anchor(Value v) const { return anchors_[v.id]; }
  /// Who fills the memory that a value lies in.
  int32_t maker(Value v) const { return makers_[anchor(v).id]; }

  /// The kernel that computes these together, and how long it takes; nothing where none can.
  std::optional<Candidate> candidate(std::vector<int32_t> members) const {
    const std::vector<Value> stored = wanted(members);
    if (stored.empty()) return std::nullopt;
    std::optional<Draft> drafted = draft(source_, members, stored);
    if (!drafted || drafted->repeats > 0) return std::nullopt;
    if (drafted->loads.size() + drafted->stores.size() > most_buffers) return std::nullopt;
    std::optional<Fused> fused = arrange(graph_, std::move(*drafted), threads_);
    if (!fused) return std::nullopt;
    const double time = nanoseconds(*fused);
    return Candidate{std::move(members), std::move(*fused), time};
  }

 private:
  static std::vector<bool> for_loops(const Graph& graph) {
    std::vector<bool> found;
    for (const Node& node : graph.nodes()) found.push_back(loops::is_for_loops(graph, node));
    return found;
  }

  const std::vector<Node>& nodes() const { return graph_.nodes(); }
  Value result(int32_t node) const { return std::get<Value>(nodes()[size_t(node)].results[0]); }

  bool is_view(const Node& node) const {
    bool views = true, any = false;
    for_each_result(node, [&](Value v) {
      any = true;
      views = views && anchors_[v.id] != v;
    });
    return any && views;
  }

  /// Who reads what memory: loops by where it is, everybody else keeps it in memory for good.
  void find_readers() {
    for (Value output : graph_.outputs())
      if (output) is_kept_[anchors_[output.id].id] = true;
    for (size_t n = 0; n < nodes().size(); ++n) {
      const Node& node = nodes()[n];
      if (is_view(node)) continue;
      const bool loops = is_for_loops_[n];
      for_each_argument(node, [&](Value v) {
        const Value anchor = anchors_[v.id];
        if (loops)
          readers_[anchor.id].push_back(int32_t(n));
        else
          is_kept_[anchor.id] = true;
      });
    }
  }

  /// The results of members that somebody else needs.
  std::vector<Value> wanted(const std::vector<int32_t>& members) const {
    std::vector<Value> found;
    for (int32_t member : members) {
      const Value made = result(member);
      const auto& readers = readers_[made.id];
      if (is_kept_[made.id] || std::any_of(readers.begin(), readers.end(), [&](int32_t reader) {
            return !std::binary_search(members.begin(), members.end(), reader);
          }))
        found.push_back(made);
    }
    return found;
  }

  const Graph& graph_;
  const int64_t threads_;
  const std::vector<Value> anchors_;
  const std::vector<int32_t> makers_;
  const std::vector<bool> is_for_loops_;  ///< of each node
  const Source source_;
  std::vector<std::vector<int32_t>> readers_;  ///< of each anchor, those that loops can compute
  std::vector<bool> is_kept_;                  ///< anchors that others read, or the caller
};

class Grouping {
 public:
  Grouping(const Graph& graph, int64_t threads)
      : graph_(graph),
        candidates_(graph, threads),
        followers_(followers(graph, candidates_.all_for_loops())),
        group_of_(graph.nodes().size(), -1),
        loaded_by_(graph.value_count()) {}

  std::vector<Group> run() {
    for (now_ = 0; now_ < int32_t(group_of_.size()); ++now_)
      if (candidates_.is_for_loops(now_)) place(now_);
    std::vector<Group> made;
    for (Candidate& candidate : groups_)
      if (!candidate.members.empty() && !only_moves(candidate.fused))
        made.push_back({std::move(candidate.members), std::move(candidate.fused)});
    return made;
  }

 private:
  const std::vector<Node>& nodes() const { return graph_.nodes(); }

  void place(int32_t node) {
    std::optional<Candidate> alone = candidates_.candidate({node});
    if (!alone) return;
    groups_.push_back(std::move(*alone));
    set_group(int32_t(groups_.size()) - 1);
    for (int32_t producer : producers(node)) try_to_join(producer);
    for (int32_t sibling : siblings(node)) try_to_join(sibling);
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

  /// The group of the node that is being placed takes in another member's.
  void try_to_join(int32_t member) {
    const int32_t into = group_of_[size_t(now_)], other = group_of_[size_t(member)];
    if (into == other || other < 0) return;
    Candidate &a = groups_[size_t(other)], &b = groups_[size_t(into)];
    if (a.members.size() + b.members.size() > most_members || leads_back(other, into)) return;
    std::vector<int32_t> both;
    std::merge(a.members.begin(), a.members.end(), b.members.begin(), b.members.end(),
               std::back_inserter(both));
    std::optional<Candidate> joined = candidates_.candidate(std::move(both));
    if (!joined || joined->time > a.time + b.time) return;
    b = std::move(*joined);
    a.members.clear();
    set_group(into);
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
  int32_t visit_ = 0, now_ = 0;
};

}  // namespace

std::vector<Group> groups(const Graph& graph, int64_t threads) { return Grouping(graph, threads).run(); }

std::optional<std::vector<Group>> groups_of(const Graph& graph, int64_t threads, const Members& members) {
  const Candidates candidates(graph, threads);
  std::vector<bool> is_taken(graph.nodes().size());
  std::vector<Group> made;
  for (const std::vector<int32_t>& each : members) {
    bool fits = !each.empty();
    for (int32_t node : each) {
      fits =
          fits && size_t(node) < is_taken.size() && candidates.is_for_loops(node) && !is_taken[size_t(node)];
      if (fits) is_taken[size_t(node)] = true;
    }
    std::optional<Candidate> candidate = fits ? candidates.candidate(each) : std::nullopt;
    if (!candidate) return std::nullopt;
    made.push_back({std::move(candidate->members), std::move(candidate->fused)});
  }
  return made;
}

}  // namespace tandem::loops
