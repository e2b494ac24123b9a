/// The autograd node of a compiled call: runs the backward, and under create_graph makes the node above.
#pragma once

#include "runtime/entry.h"

#include <torch/csrc/autograd/saved_variable.h>

#include <set>

namespace tandem {

/// Saved values count the writes to the tensors that they share memory with.
void share_versions(const Derivative& derivative, const Tensors& inputs, const Tensors& results,
                    Tensors& saved);

class CompiledNode final : public torch::autograd::Node {
 public:
  using variable_list = torch::autograd::variable_list;
  using edge_list = torch::autograd::edge_list;
  /// Orders above the first that a node needs, up to its own: a function that has too many of them drops
  /// some.
  using Orders = std::vector<std::shared_ptr<Derivative>>;

  /// `beyond` is where derivatives of higher order may lead, of the first order besides `edges`: the engine
  /// must not come there before.
  CompiledNode(std::shared_ptr<Entry> entry, Derivative& derivative, size_t part, edge_list&& edges,
               edge_list beyond, Orders orders = {});

  void save(const Tensors& saved, const Tensors& results);

  variable_list apply(variable_list&& gradients) override;

  /// What a backward has read is gone already; what others of the call's outputs need stays, as it does in
  /// eager where they have nodes of their own.
  void release_variables() override {}

  std::string name() const override;

  /// Makes this the history of an output, which gets its gradients at the next place.
  void attach(at::Tensor& output);

 private:
  /// `passages` are the places by which eager's engine would come without a gradient; empty where no code of
  /// the user's minds.
  variable_list run_rows(variable_list&& gradients, const std::vector<bool>& passages, bool is_last);
  variable_list run(const BackwardVariant& asked, variable_list&& gradients, bool is_last);
  variable_list run_differentiably(const BackwardVariant& asked, variable_list&& gradients, bool is_last);
  BackwardVariant variant(const variable_list& gradients, const std::vector<bool>& passages) const;
  bool refuse_reentrant(const std::vector<bool>& came) const;
  std::vector<bool> take_passages(const variable_list& gradients);
  static std::vector<bool> all_that_come(const variable_list& gradients, std::vector<bool> passages);
  bool wants(size_t output) const {
    return !next_edge(output).is_valid() || task_should_compute_output(output);
  }
  bool brings_any(const variable_list& gradients, const std::vector<bool>& passages) const;
  void pass_on(const std::vector<bool>& came, const variable_list& found);
  void note_passage(size_t place);
  static void note_passage_behind(torch::autograd::Edge edge);
  edge_list edges_above();
  const OrderPart& part() const { return derivative_.parts()[part_]; }
  void refuse_second(const BackwardVariant& asked);
  Tensors unpack(const std::vector<size_t>& wanted, size_t tangents);
  void give_up(const BackwardVariant& asked, const std::vector<size_t>& taken,
               const std::vector<size_t>* as_first = nullptr);

  std::shared_ptr<Entry> entry_;  ///< owns the first derivative
  Orders orders_;
  Derivative& derivative_;
  const size_t part_;
  /// by their places; those that this part never reads are empty
  std::vector<torch::autograd::SavedVariable> saved_;
  std::set<std::pair<int, size_t>> passages_;  ///< of graph tasks that are under way, by places
  std::vector<Between> done_;                  ///< backwards that were the last ones through their nodes
  const edge_list beyond_;
  std::vector<std::optional<WeakNodePtr>> own_;  ///< before this node, by the places of outputs
};

}  // namespace tandem
