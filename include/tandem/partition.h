/// How a joint graph is split into the forward and the backward that run apart.
#pragma once

#include <tandem/graph.h>
#include <tandem/named.h>

#include <optional>

namespace [[gnu::visibility("default")]] tandem {

/// A joint graph and where its halves meet: the first `primals` inputs belong to the forward, the rest are
/// tangents; the first `forward_outputs` outputs are the forward's, the rest are gradients.
struct Joint {
  Graph graph;
  size_t primals = 0;
  size_t forward_outputs = 0;
};

/// The two halves. `forward` takes the primals and returns the joint's forward outputs, then `saved`;
/// `backward` takes `saved`, then the tangents, and returns the gradients. Values keep the joint's names in
/// both.
struct Partition {
  Graph forward, backward;
  std::vector<Value> saved;
};

/// A value that a forward keeps for its backward.
struct SavedValue {
  std::string name;
  int64_t bytes = 0;          ///< that are kept because of it; none of inputs, outputs, and views of others
  std::string op = {};        ///< the operator that makes it; empty for an input
  std::string location = {};  ///< its file:line, where Options::record_locations asked for it
  std::string why;            ///< in words: too dear to compute again, random, an output, ...
};

/// How many seconds a node takes when it is run by itself.
using CostModel = Named<double(const Graph&, const Node&)>;

/// The model of an ordinary machine, the same on every one.
CostModel built_in_cost_model();

/// What a partitioner is told besides the graph.
struct PartitionContext {
  double memory_budget = 1;  ///< Options::memory_budget
  /// Values of the forward that are saved whether or not this backward reads them: derivatives of higher
  /// order will.
  std::vector<Value> must_save = {};
  std::optional<int64_t> memory_budget_bytes = {};  ///< Options::memory_budget_bytes
  /// Primals that the function returns as well, themselves or as views: the caller may write what he gets.
  std::vector<Value> given_back = {};
  CostModel cost_model = {};  ///< Options::cost_model, or the machine's own; empty: the built-in one
  /// What the forward makes in memory that the program marked with tandem::must_save: it is never computed
  /// again.
  std::vector<Value> marked_must_save = {};
  /// And with tandem::prefer_recompute: computing it again takes no time.
  std::vector<Value> marked_prefer_recompute = {};
  /// Whether the backend computes a node in loops together with its neighbours, so that computing it again
  /// takes no longer than reading it; empty: it does so with none.
  std::function<bool(const Graph&, const Node&)> fuses = {};
};

/// Splits a joint graph.
struct Partitioner : Named<Partition(const Joint&, const PartitionContext&)> {
  using Named::Named;
  /// Whether, below a budget of 1 or where the backend fuses them, a joint graph is to have narrow forms of
  /// what its backward reads less than all of: of the result of a relu a bool for each element, of places in
  /// small planes a smaller type. The forward's own nodes make them, the backward's read them in place of the
  /// value; a form that the partitioner saves takes less room.
  bool takes_narrow_forms = false;
};

/// Each node runs in the phase in which it was recorded; what the backward reads of the forward is saved,
/// unless fewer bytes are where what the program marked is computed again.
Partition partition_default(const Joint& joint, const PartitionContext& context = {});

/// At a budget of 1 as few bytes are saved as can be without computing anything again but what the backend
/// fuses, and what the program marked. Below, values are given up in the order of bytes for seconds, a
/// smaller budget those of a larger one and more: until the predicted peak of a step has come down from that
/// of budget 1 as far towards the least that is found as the budget asks for, or until as few bytes are saved
/// as the context allows.
Partition partition_min_cut(const Joint& joint, const PartitionContext& context = {});

/// The highest number of bytes that are alive at once in a step, above those that were before: forward, then
/// backward, each value freed at its last use.
int64_t predicted_peak_bytes(const Partition& halves);

/// The least is saved: what the backward reads is computed again from the primals wherever that gives the
/// same, and random numbers are drawn again from the generator's state. It does so from copies of the
/// primals, which the caller may write.
Partition partition_recompute_all(const Joint& joint, const PartitionContext& context = {});

/// The most is saved: every value of the forward in memory that nobody else has, and what the backward reads.
Partition partition_save_all(const Joint& joint, PartitionContext context = {});

/// Throws Error that names the partitioner unless these are well formed halves of the joint graph, as
/// `Partition` describes them, and save what must be saved.
void verify(const Partition& halves, const Joint& joint, const PartitionContext& context,
            const std::string& partitioner);

/// Adds a partitioner under a name for Options::partitioner.
void register_partitioner(const std::string& name, Partitioner partitioner);
/// The partitioner with this name; throws Error that lists the known ones.
Partitioner find_partitioner(const std::string& name);

}  // namespace tandem
