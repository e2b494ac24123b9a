/// One run of `plan_calls`.
#pragma once

#include <map>
#include <set>

#include "aot/traced.h"
#include "aot/views.h"
#include "graph/geometry.h"

namespace tandem {

/// Inputs are planned in plan_inputs.cpp, outputs in plan_outputs.cpp.
class Planner {
 public:
  Planner(const Traced& traced, const std::vector<std::string>& names, bool keep);
  Plan run();

 private:
  void find_written_storages();

  /// What autograd sees: not what a node writes itself, nor what is detached.
  void note_reads(const Node& node);

  // ---- inputs
  void plan_input(const TracedInput& input);

  /// Eager differentiates writes to a view through its base: what lies before a write to a part gets a dense
  /// copy of the gradient there, which sums are rounded by.
  static bool writes_part_of_view_with_gaps(const TracedInput& input);
  /// To eager the input has no history until somebody asks its base, so such a write is one to a leaf, and
  /// refused; the fake has no base.
  static bool is_written_behind_a_view(const TracedInput& input);
  bool shares_memory(const TracedInput& input) const;

  /// Nothing that autograd saw has been written to this input.
  static bool is_boundary(const TracedInput& input);

  /// Autograd refuses to differentiate views that came in lists, or were made under no_grad, once the version
  /// of their memory is another; tensors that are inputs each have a version of their own here.
  bool has_frail_views(int32_t storage) const;
  /// Eager adds up the gradients of what read a view of a tensor apart from those of what was written behind;
  /// of an input that is a view it does so if the graph takes what it is a view of.
  bool is_read_between_writes(size_t index) const;
  void find_overlapping_writes();

  /// Its elements are the base's; sizes, strides and versions are its own.
  void plan_member(const TracedMember& member);

  // ---- outputs

  int32_t storage_of(const at::Tensor& fake) const { return trace_.meta(tracer_.value_of(fake)).storage; }
  void group_outputs();
  void plan_output(const at::Tensor& output);

  /// The first output that is this tensor, where one was planned already.
  std::optional<size_t> same_output(const at::Tensor& output) const;

  /// What an output may be a view of, with its place in the contract: the nearest first.
  std::vector<std::pair<at::Tensor, size_t>> visible_inputs() const;
  void plan_view_of_input(const at::Tensor& output, OutputRole& role);

  /// False where the gradient of the view is not that of its base.
  bool plan_view(const at::Tensor& output, const at::Tensor& base, OutputRole& role);
  void plan_own_output(const at::Tensor& output, OutputRole& role);

  /// What the caller gets the outputs of this memory as views of: as in eager where that can be said in view
  /// operators, one of them otherwise.
  const at::Tensor& base_on(int32_t storage);
  bool are_views_of(const at::Tensor& base, const std::vector<at::Tensor>& together);

  /// A write to a view of such a tensor, an expanded one, is differentiated through what that is a view of in
  /// turn.
  bool holds_elements_twice(const at::Tensor& output) const {
    return output.is_view() && !is_surely_injective(trace_.meta(tracer_.value_of(output)));
  }

  /// The one of them that the others are views of, or what all of them are views of.
  at::Tensor base_of(const std::vector<at::Tensor>& together);
  void order_output_steps();
  /// The output that this view of the same tensor was made of, with the history that begins at `node`, where
  /// it has one.
  std::optional<size_t> view_between(size_t output, Value parent, size_t steps,
                                     const torch::autograd::Node* node) const;
  void note_versions(size_t result);
  size_t returned(const at::Tensor& fake);

  // ---- gradients
  void find_differentiable();

  /// Contents written behind autograd's back have no gradient of their own.
  bool is_untouched_leaf(size_t returned) const;

  const Traced& traced_;
  const Tracer& tracer_;
  const Graph& trace_;
  const std::vector<std::string>& names_;
  const bool keep_;
  const std::vector<ViewLink> links_;
  std::set<int32_t> written_;  ///< storages that the forward writes
  /// storages of which some view got other sizes or strides in place
  std::set<int32_t> reshaped_;
  std::set<int32_t> read_first_;  ///< storages that the forward reads before any of that
  std::set<int32_t> on_inputs_;
  std::map<int32_t, std::vector<at::Tensor>> outputs_on_;
  std::map<int32_t, at::Tensor> bases_on_;  ///< by the storages of outputs
  Tensors later_sources_;
  Plan plan_;
};

}  // namespace tandem
