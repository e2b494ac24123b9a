#include "partition/giving_up.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tandem {
namespace {

class Order {
 public:
  Order(const Joint& joint, const Blocks& blocks, std::vector<bool> kept, const CostModel& cost_model)
      : graph_(joint.graph),
        blocks_(blocks),
        cost_model_(cost_model),
        kept_(std::move(kept)),
        runs_again_(graph_.nodes().size()),
        seen_(blocks.size()) {}

  std::vector<GivenUp> run() {
    note_what_runs_again_already();
    std::vector<GivenUp> steps;
    for (size_t b : candidates()) {
      const GivenUp step = give_up(b);
      if (step.bytes <= 0) continue;
      commit(step);
      steps.push_back(step);
    }
    return steps;
  }

 private:
  /// What a backward needs is kept, or is computed again with what that reads.
  void note_what_runs_again_already() {
    for (size_t b = 0; b < blocks_.size(); ++b)
      if (blocks_[b].is_needed && !kept_[b]) mark(give_up(b));
  }

  bool may_go(size_t b) const { return kept_[b] && blocks_[b].is_repeatable && !blocks_[b].is_kept_anyway; }

  /// The most bytes for a second first. Of blocks that are worth about the same, as those of equal layers
  /// are, every other one goes before the rest: what lies between two that stay is short.
  std::vector<size_t> candidates() {
    struct Candidate {
      int worth;
      uint32_t place;
      size_t block;
    };
    std::vector<Candidate> found;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (!may_go(b)) continue;
      const GivenUp step = give_up(b);
      if (step.bytes <= 0) continue;
      const double worth = double(step.bytes) / std::max(step.seconds, 1e-9);
      found.push_back({int(std::lround(std::log2(worth) * 4)), 0, b});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Candidate& a, const Candidate& b) { return a.worth > b.worth; });
    for (size_t i = 0, first = 0; i < found.size(); ++i) {
      if (found[i].worth != found[first].worth) first = i;
      found[i].place = reversed(uint32_t(i - first + 1));
    }
    std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
      return a.worth != b.worth ? a.worth > b.worth : a.place > b.place;
    });
    std::vector<size_t> order;
    for (const Candidate& candidate : found) order.push_back(candidate.block);
    return order;
  }

  static uint32_t reversed(uint32_t number) {
    uint32_t result = 0;
    for (int bit = 0; bit < 32; ++bit) result |= ((number >> bit) & 1u) << (31 - bit);
    return result;
  }

  /// What it takes to compute a block again, beside what runs again already.
  GivenUp give_up(size_t block) {
    GivenUp step{block, {}, blocks_[block].bytes, 0};
    reached_.clear();
    std::vector<size_t> waiting{block};
    ++round_;
    seen_[block] = round_;
    while (!waiting.empty()) {
      const size_t b = waiting.back();
      waiting.pop_back();
      bool is_new = false;
      for (int32_t maker : blocks_[b].makers) {
        if (runs_again_[size_t(maker)]) continue;
        is_new = true;
        reached_.push_back(maker);
        step.seconds += cost_model_(graph_, graph_.nodes()[size_t(maker)]);
      }
      if (!is_new) continue;
      for (int32_t read : blocks_[b].reads) {
        const size_t r = size_t(read);
        if (kept_[r] || blocks_[r].is_kept_anyway || seen_[r] == round_) continue;
        seen_[r] = round_;
        if (blocks_[r].is_repeatable) {
          waiting.push_back(r);
        } else {
          step.kept_instead.push_back(r);
          step.bytes -= blocks_[r].bytes;
        }
      }
    }
    return step;
  }

  void mark(const GivenUp& step) {
    for (size_t b : step.kept_instead) kept_[b] = true;
    for (int32_t node : reached_) runs_again_[size_t(node)] = true;
  }

  void commit(const GivenUp& step) {
    mark(step);
    kept_[step.block] = false;
  }

  const Graph& graph_;
  const Blocks& blocks_;
  const CostModel& cost_model_;
  std::vector<bool> kept_, runs_again_;
  std::vector<uint32_t> seen_;  ///< in which round it was met last
  uint32_t round_ = 0;
  std::vector<int32_t> reached_;  ///< nodes of the last step that was looked at
};

}  // namespace

std::vector<GivenUp> order_of_giving_up(const Joint& joint, const Blocks& blocks, std::vector<bool> kept,
                                        const CostModel& cost_model) {
  return Order(joint, blocks, std::move(kept), cost_model).run();
}

}  // namespace tandem
