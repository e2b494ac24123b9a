/// A function traced once for one signature.
#pragma once

#include <tandem/compiled.h>

#include "aot/roles.h"
#include "trace/tracer.h"

namespace tandem {

/// An input that is a view of another one, its base, which the graph takes instead.
struct TracedMember {
  at::Tensor fake;  ///< what the program saw
  Value value;      ///< of the fake, before the program ran
  std::string name;
  bool captured = false, requires_grad = false;
  size_t base = 0;  ///< which input
};

/// What becomes of the gradient that gathers in a captured leaf.
struct TracedGradient {
  Value leaf;  ///< as it went in
  /// which output is its gradient from now on; nothing: it has none
  std::optional<size_t> output = {};
  friend bool operator==(const TracedGradient&, const TracedGradient&) = default;
};

/// Some inputs overlap in memory that the function writes.
struct OverlappingWrites : RunEagerly {
  OverlappingWrites(const std::string& what, std::vector<std::vector<size_t>> inputs)
      : RunEagerly(what), inputs(std::move(inputs)) {}
  std::vector<std::vector<size_t>> inputs;  ///< of the tracer, in groups
};

/// Fakes of inputs and outputs with their autograd graph: the one source of every derivative, kept as long as
/// the compiled function.
struct Traced {
  std::unique_ptr<Tracer> tracer;
  Tensors arguments;  ///< a fake per argument, undefined where the argument is
  /// as the program returned them, and behind them gradients that it put into captured leaves
  Tensors outputs;
  std::vector<TracedGradient> gradients = {};  ///< that are others than before
  std::shared_ptr<const void> structure;
  size_t forward_nodes = 0;
  std::vector<TracedMember> members = {};
  /// fakes that the program still owns: whoever traced it turns them into real tensors
  std::vector<FakePtr> kept = {};
};

/// What is known before a trace.
struct TraceRequest {
  bool record_locations = false;
  /// those that the program makes of its arguments before it starts
  const std::vector<TracedMember>* members = nullptr;
  /// that the program is known to reach: it may clear their gradients before it uses them
  Tensors leaves = {};
  bool is_check = false;  ///< compared with a trace of before, and dropped
};

/// Runs `program` once on fakes of `arguments`, in the modes of the calling thread. Real tensors, generators
/// and the program's captures stay as they were.
Traced trace_forward(const detail::Program& program, const Tensors& arguments,
                     const TraceRequest& request = {});

/// How many of the outputs are gradients of captured leaves.
size_t count_gradients(const std::vector<TracedGradient>& gradients);

/// Where the histories of a traced function end: what it returned, kept and was given, and the tensors that
/// these are views of. A view that was made under no_grad has no history of its own, and its base has one.
Tensors ends_of(const Traced& traced);

/// Whether code of the user's runs in the histories: of custom functions, or hooks. An error of libtorch's
/// where autograd forbids that they are read.
bool has_own_code(const Traced& traced);

/// The first tensor that the program kept, in words.
std::string describe_kept(const Traced& traced);

/// One step in making what the caller gets: number `step` of the views that lead to output `output`, or the
/// whole output where there are none.
struct OutputStep {
  enum class Kind : uint8_t {
    Taken,    ///< by calling the operator
    Shared,   ///< `from` has just become this very view, on the way to another one
    Sibling,  ///< another result of the call that made a view last
  };
  size_t output = 0, step = 0;
  /// the output that it begins at, where the program made the view of that
  std::optional<size_t> from = {};
  Kind kind = Kind::Taken;
};

/// The one view of a result that the caller gets. Eager adds the gradient that comes to the view before those
/// from inside the function, so the backward is taken of the view.
struct SoleView {
  at::Tensor view;
  std::vector<ViewStep> steps;  ///< from the result
};

/// What the compiled forward has to return, and what is done with it.
struct Plan {
  Roles roles;
  /// fakes of the forward graph's outputs: contents of written inputs, then outputs and bases of outputs
  Tensors returned;
  std::vector<size_t> differentiable;  ///< those of `returned` that need a tangent
  /// the fakes that tangents belong to: differentiable ones of `returned`, then views of inputs
  Tensors tangent_sources;
  /// for each of these, where the caller gets but one view of it
  std::vector<std::optional<SoleView>> sole_views;
  std::vector<size_t> gradient_inputs;  ///< inputs that gradients are taken of
  std::vector<Value> kept_writes;
  /// Inputs whose writes autograd does not see but must count: before the histories of inputs are read, or
  /// after. A view's history is another one once its base's version has changed, and the backward leads to
  /// the one that the program read.
  std::vector<size_t> counted_before, counted_after;
  /// those of `returned` that the caller gets and that were written behind being made, with their versions
  std::vector<std::pair<size_t, uint32_t>> written_results;
  std::vector<TracedGradient> gradients;
  /// in the order in which the program took them, since autograd adds gradients in the order of its nodes
  std::vector<OutputStep> output_steps;
};

/// Sorts out writes and aliasing of a traced function; throws OverlappingWrites, or RunEagerly for the kinds
/// of aliasing that are not compiled.
Plan plan_calls(const Traced& traced, const std::vector<std::string>& input_names, bool keep_input_mutations);

}  // namespace tandem
