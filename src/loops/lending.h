/// Nodes that groups compute again instead of reading what another group made.
#pragma once

#include "loops/candidates.h"

#include <unordered_map>

namespace tandem::loops {

/// Which groups have which nodes, and what each of them has to store.
class Division {
 public:
  Division(const Candidates& candidates, std::vector<Members> members);

  const std::vector<Members>& members() const { return members_; }
  int32_t owner(int32_t node) const { return owners_[size_t(node)]; }

  void lend(int32_t node, int32_t group);
  void take_back(int32_t node, int32_t group);

  /// The groups besides its own that read what a node makes, and do not make it themselves; -1 among them for
  /// a library.
  std::vector<int32_t> other_readers(int32_t node) const;

  std::vector<Value> stored(int32_t group) const;

  std::optional<Candidate> candidate(int32_t group) const;

 private:
  bool is_lent(int32_t node, int32_t group) const;

  const Candidates& candidates_;
  std::vector<Members> members_;
  std::vector<int32_t> owners_;                                  ///< of each node; -1: none
  std::unordered_map<int32_t, std::vector<int32_t>> borrowers_;  ///< of each node that is lent
};

/// Results that other groups alone read are computed by these instead, where that takes less time than to
/// store and to read them.
std::vector<Members> lend(const Candidates& candidates, std::vector<Members> members);

}  // namespace tandem::loops
