/// What groups of nodes would be.
#pragma once

#include "loops/draft.h"
#include "loops/groups.h"

#include <unordered_set>

namespace tandem::loops {

/// A kernel that computes some nodes together.
struct Candidate {
  std::vector<int32_t> members;
  Fused fused;
  double time = 0;  ///< nanoseconds, about
};

/// A graph, who reads what in it, and what groups of its nodes would be.
class Candidates {
 public:
  Candidates(const Graph& graph, int64_t threads);

  bool is_for_loops(int32_t node) const { return is_for_loops_[size_t(node)]; }
  const std::vector<bool>& all_for_loops() const { return is_for_loops_; }
  /// Whether what it reads may be something else where it is computed later.
  bool reads_written_memory(int32_t node) const;
  Value anchor(Value v) const { return anchors_[v.id]; }
  bool is_kept(Value anchor) const { return is_kept_[anchor.id]; }
  const std::vector<int32_t>& readers(Value anchor) const { return readers_[anchor.id]; }
  Value result(int32_t node) const { return std::get<Value>(nodes()[size_t(node)].results[0]); }
  const std::vector<Node>& nodes() const { return graph_.nodes(); }
  /// Who fills the memory that a value lies in.
  int32_t maker(Value v) const { return makers_[anchor(v).id]; }

  /// The kernel that computes these together, and how long it takes; nothing where none can.
  std::optional<Candidate> candidate(std::vector<int32_t> members) const;
  /// With these results stored.
  std::optional<Candidate> candidate(std::vector<int32_t> members, const std::vector<Value>& stored) const;

 private:
  bool is_view(const Node& node) const;

  /// Who reads what memory: loops by where it is, everybody else keeps it in memory for good.
  void find_readers();

  /// The results of members that somebody else needs.
  std::vector<Value> wanted(const std::vector<int32_t>& members) const;

  const Graph& graph_;
  const int64_t threads_;
  const std::vector<Value> anchors_;
  const std::vector<int32_t> makers_;
  const std::vector<bool> is_for_loops_;  ///< of each node
  const std::vector<int32_t> twins_;
  const Source source_;
  std::vector<std::vector<int32_t>> readers_;  ///< of each anchor, those that loops can compute
  std::vector<bool> is_kept_;                  ///< anchors that others read, or the caller
  std::unordered_set<int32_t> written_;        ///< storages that nodes write
};

/// Nodes of either, ascending.
std::vector<int32_t> merged(const std::vector<int32_t>& a, const std::vector<int32_t>& b);

}  // namespace tandem::loops
