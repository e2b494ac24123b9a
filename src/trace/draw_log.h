/// What a trace knows of the generator states that its program may have read.
#pragma once

#include <tandem/graph.h>

#include <map>
#include <optional>

namespace tandem {

/// Reading a generator's state leaves no operator behind. But while a program is traced the generator carries
/// a label that changes with every draw (`SeedWatch`), labels only grow, and a state has the label of when it
/// was read: so the label that is found before a draw says whether the program has put an old state back, and
/// which.
class DrawLog {
 public:
  /// From here on labels stand for a new live state, which nothing has drawn from.
  void begin(uint64_t label) { live_.push_back({label, {}}); }
  /// The live state was drawn from: the graph has it as `state`, or not at all. `label` stands for the next.
  void drew(Value state, uint64_t label) {
    live_.back().state = state;
    begin(label);
  }
  /// A draw from a state that was put back has left `next` behind, which `label` stands for.
  void drew_again(Value next, uint64_t label) { replayed_[label] = next; }

  bool is_live(uint64_t label) const {
    return !live_.empty() && label >= live_.back().first_label && !replayed_.contains(label);
  }

  /// The value of a state that was put back; none where the graph does not have it, or the label is none of
  /// this trace's.
  Value state_of(uint64_t label) const {
    if (auto found = replayed_.find(label); found != replayed_.end()) return found->second;
    Value state;
    for (const Stretch& stretch : live_)
      if (stretch.first_label <= label) state = stretch.state;
    return state;
  }

 private:
  /// Labels from the first one up to that of the next stretch were on the generator between two draws.
  struct Stretch {
    uint64_t first_label;
    Value state;  ///< that the draw behind them began in
  };
  std::vector<Stretch> live_;
  std::map<uint64_t, Value> replayed_;
};

}  // namespace tandem
