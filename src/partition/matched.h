/// Where in a later graph the values of an earlier one are.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>

#include "partition/computation_keys.h"
#include "partition/extract.h"

namespace tandem {

/// How a saved value is computed, and whether the caller can write the memory that it lies in.
struct Origin {
  uint64_t key;
  bool within_reach;
};

/// A joint graph beside what an earlier forward of the same program kept.
class Matched {
 public:
  /// `apart` as of ComputationKeys.
  Matched(const Joint& joint, const Kept& kept, bool apart);

 protected:
  bool is_tangent_or_constant(Value value) const { return given_[size_t(value.id)]; }
  /// Whether the forward has run this node already; it would run again for the sake of what was not kept.
  bool has_run(size_t node) const { return has_run_[node]; }
  bool was_drawn(size_t node) const { return draw_of_[node] > 0 && draw_of_[node] <= draws_done_; }
  /// Whether a node reads the state that a draw of the forward began in.
  bool was_state(size_t node) const;
  /// Which saved value is the state that a draw of the forward began in, or none.
  std::optional<size_t> kept_state(size_t node) const;
  bool had_effect(size_t node) const { return effect_of_[node] > 0 && effect_of_[node] <= effects_done_; }
  /// A draw or an effect of what follows the forward; it happens whether or not a gradient needs it.
  bool is_due(size_t node) const { return draw_of_[node] > draws_done_ || effect_of_[node] > effects_done_; }
  /// Whether nodes that run again read another thing than those behind the forward, which read memory of the
  /// caller's: there is one out of his reach.
  bool has_own(Value value) const;

  const Joint& joint_;
  const Graph& graph_;
  ComputationKeys computations_;
  const std::vector<uint64_t> keys_;
  std::vector<int64_t> saved_as_;  ///< the place among the saved, or -1; the caller's memory first
  std::vector<int64_t> own_as_;    ///< the place among those out of the caller's reach
  const std::vector<int32_t> maker_;
  std::unordered_map<uint64_t, Value> ran_;  ///< values of the forward that ran, by how they are computed

 private:
  void find_saved(const std::map<size_t, Origin>& origins);
  void number_draws_and_effects(const Kept& kept);
  void find_what_has_run(const Kept& kept, const std::vector<uint64_t>& old_keys);
  void find_what_is_out_of_reach();

  std::vector<bool> given_, has_run_;
  std::vector<bool> out_of_reach_;  ///< kept, or computed again, where the caller cannot write
  std::vector<size_t> draws_before_;
  std::vector<size_t> draw_of_, effect_of_;  ///< for each node the how manieth draw or effect it is, from 1
  size_t draws_done_ = 0, effects_done_ = 0;
  std::unordered_map<size_t, size_t> kept_states_;  ///< the place among the saved values, by the draw
};

}  // namespace tandem
