/// Splitting a joint graph at values that somebody chose: what partitioners that recompute are made of.
#pragma once

#include <tandem/partition.h>

#include "graph/by_storage.h"

namespace tandem {

/// The joint graph with a read of the generator's state before every random node of the forward that can be
/// replayed. Such a state can be saved in place of what was drawn. States that nothing reads are dead code.
Joint with_generator_states(Joint joint);

/// What the nodes of the backward read that lead to gradients, by the ids of values.
std::vector<bool> read_by_backward(const Joint& joint);

/// Primals of which the backward's own nodes read something, by the ids of values, and that nothing else
/// lends to the caller or writes: where he writes one before a backward, eager refuses that backward.
std::vector<bool> primals_read_by_backward(const Joint& joint, const PartitionContext& context);

/// What a backward can have of a forward besides what that saves for it.
class Recomputation {
 public:
  /// Looks at a joint graph that has its generator states. Nodes that run again read the primals that
  /// `as_they_are` names where they are, and copies of others. The memory of `never` is not made again.
  explicit Recomputation(const Joint& joint, std::vector<bool> as_they_are = {},
                         const std::vector<Value>& never = {});

  /// Whether the backward can run the node that makes this value of the forward, and gets the same.
  bool may_recompute(Value value) const {
    return maker_[size_t(value.id)] >= 0 && repeatable_[size_t(maker_[size_t(value.id)])];
  }
  /// Whether a saved value is in the backward what it was when it was made: the forward does not write it in
  /// place.
  bool may_save(Value value) const { return !written_[size_t(value.id)]; }
  /// Whether others than the two halves know the memory of a value: the caller may write what he gave or got.
  bool is_seen_by_caller(Value value) const;
  /// Whether nodes that run again read this primal itself.
  bool is_read_as_it_is(Value primal) const {
    return size_t(primal.id) < as_they_are_.size() && as_they_are_[size_t(primal.id)];
  }
  /// Whether nodes that run again may read a value of the forward, or a primal, where it is or as a copy.
  bool is_available(Value value) const;
  /// The node as a backward runs it: a random one draws from its state again.
  Node again(Value value) const;
  /// Every tensor that it then reads.
  template <class Visit>
  void for_each_argument_again(Value value, Visit&& visit) const {
    for_each_argument(graph_.nodes()[maker(value)], visit);
    if (Value state = state_again(maker(value))) visit(state);
  }
  /// Which node makes a value; the same for all that it makes.
  size_t maker(Value value) const { return size_t(maker_[size_t(value.id)]); }

 private:
  bool is_repeatable(size_t node) const;
  bool may_be_copied(Value primal) const;
  bool is_output_behind_primals(Value value) const;
  Value state_of(size_t node) const;
  Value state_again(size_t node) const;

  const Graph& graph_;
  const std::vector<bool> as_they_are_;
  std::vector<int32_t> maker_;
  std::vector<bool> is_constant_, is_primal_, written_, repeatable_;
  std::vector<bool> reads_primals_;  ///< values: made again from primals that are read as they are
  /// storages: that the caller knows, of primals, of several of them
  StorageSet seen_, primals_, shared_, never_;
};

/// The halves where the backward takes what it reads of the forward from `chosen`, by the ids of values, and
/// computes the rest from there, from copies of primals, and from nothing else that the caller has: he may
/// write that before some backward that reads nothing of it in eager. What can be neither chosen nor computed
/// is saved too, and all that `context` names.
Partition split_at(const Joint& joint, const PartitionContext& context, const Recomputation& can,
                   const std::vector<bool>& chosen);

/// The live nodes of one phase, between these inputs and outputs.
Graph half_of(const Graph& joint, Phase phase, std::vector<Value> inputs, std::vector<Value> outputs);

std::vector<Value> joined(std::vector<Value> values, const std::vector<Value>& more);

/// Throws Error for a joint graph that cannot be split where it says.
void refuse_if_forward_needs_backward(const Joint& joint);

}  // namespace tandem
