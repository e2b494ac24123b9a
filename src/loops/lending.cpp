#include "loops/lending.h"

#include <algorithm>
#include <limits>

#include "loops/rows.h"

namespace tandem::loops {

Division::Division(const Candidates& candidates, std::vector<Members> members)
    : candidates_(candidates), members_(std::move(members)), owners_(candidates.nodes().size(), -1) {
  for (size_t group = 0; group < members_.size(); ++group) {
    for (int32_t node : members_[group].own) owners_[size_t(node)] = int32_t(group);
    for (int32_t node : members_[group].borrowed) borrowers_[node].push_back(int32_t(group));
  }
}

void Division::lend(int32_t node, int32_t group) {
  auto& borrowed = members_[size_t(group)].borrowed;
  borrowed.insert(std::lower_bound(borrowed.begin(), borrowed.end(), node), node);
  borrowers_[node].push_back(group);
}

void Division::take_back(int32_t node, int32_t group) {
  std::erase(members_[size_t(group)].borrowed, node);
  std::erase(borrowers_[node], group);
}

std::vector<int32_t> Division::other_readers(int32_t node) const {
  std::vector<int32_t> found;
  auto add = [&](int32_t group) {
    if (group == owner(node) || (group >= 0 && is_lent(node, group))) return;
    if (std::find(found.begin(), found.end(), group) == found.end()) found.push_back(group);
  };
  const Value made = candidates_.result(node);
  if (candidates_.is_kept(made)) add(-1);
  for (int32_t reader : candidates_.readers(made)) {
    add(owner(reader));
    if (const auto borrowing = borrowers_.find(reader); borrowing != borrowers_.end())
      for (int32_t group : borrowing->second) add(group);
  }
  return found;
}

std::vector<Value> Division::stored(int32_t group) const {
  std::vector<Value> found;
  for (int32_t node : members_[size_t(group)].own)
    if (!other_readers(node).empty()) found.push_back(candidates_.result(node));
  return found;
}

std::optional<Candidate> Division::candidate(int32_t group) const {
  const auto& [own, borrowed] = members_[size_t(group)];
  return candidates_.candidate(merged(own, borrowed), stored(group));
}

bool Division::is_lent(int32_t node, int32_t group) const {
  const auto found = borrowers_.find(node);
  return found != borrowers_.end() &&
         std::find(found->second.begin(), found->second.end(), group) != found->second.end();
}

namespace {

/// Results that other groups alone read are computed by these instead, where that takes less time than to
/// store and to read them.
class Lending {
 public:
  Lending(const Candidates& candidates, std::vector<Members> members)
      : candidates_(candidates), division_(candidates, std::move(members)) {
    for (size_t group = 0; group < division_.members().size(); ++group)
      times_.push_back(time_of(int32_t(group)));
  }

  std::vector<Members> run() {
    for (size_t group = 0; group < times_.size(); ++group) {
      const std::vector<int32_t>& own = division_.members()[group].own;
      for (auto node = own.rbegin(); node != own.rend(); ++node)
        if (!find_fold_row(candidates_.nodes()[size_t(*node)].op) && !candidates_.reads_written_memory(*node))
          try_to_lend(*node);
    }
    return division_.members();
  }

 private:
  /// Without end where it cannot be computed so, none where nothing of it is stored.
  double time_of(int32_t group) const {
    if (division_.stored(group).empty()) return 0;
    const std::optional<Candidate> candidate = division_.candidate(group);
    return candidate ? candidate->time : std::numeric_limits<double>::infinity();
  }

  void try_to_lend(int32_t node) {
    const std::vector<int32_t> readers = division_.other_readers(node);
    if (readers.empty() || std::find(readers.begin(), readers.end(), -1) != readers.end()) return;
    for (int32_t group : readers) division_.lend(node, group);
    std::vector<int32_t> changed = readers;
    changed.push_back(division_.owner(node));
    double then = 0, now = 0;
    std::vector<double> times;
    for (int32_t group : changed) {
      then += times_[size_t(group)];
      now += times.emplace_back(time_of(group));
    }
    if (now < then)
      for (size_t i = 0; i < changed.size(); ++i) times_[size_t(changed[i])] = times[i];
    else
      for (int32_t group : readers) division_.take_back(node, group);
  }

  const Candidates& candidates_;
  Division division_;
  std::vector<double> times_;  ///< of each group
};

}  // namespace

std::vector<Members> lend(const Candidates& candidates, std::vector<Members> members) {
  return Lending(candidates, std::move(members)).run();
}

}  // namespace tandem::loops
