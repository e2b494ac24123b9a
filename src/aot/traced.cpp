#include "aot/traced.h"

#include <ATen/autocast_mode.h>

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "aot/captures.h"
#include "aot/replay.h"
#include "base/counters.h"
#include "base/history.h"
#include "base/host.h"
#include "graph/uses.h"
#include "graph/vocabulary.h"
#include "ops/facts.h"
#include "trace/boundaries.h"
#include "trace/custom_edges.h"
#include "trace/reentrant.h"
#include "trace/refuse.h"
#include "trace/seed_watch.h"

namespace tandem {
namespace {

/// Where an error may come from what fakes do not know, eager knows better, or says the same.
detail::Returned run_on_fakes(const detail::Program& program, const Tensors& arguments) {
  try {
    return program(arguments);
  } catch (const c10::Error& error) {
    const std::string said = error.what_without_backtrace();
    if (asks_for_data(said)) refuse_data_access();
    throw RunEagerly("libtorch refuses an operator while the function is traced: " + said);
  }
}

/// A hook on a tensor that the caller has as well stays with the tensor: it sees gradients that come from
/// elsewhere, and it runs before the caller's own.
void refuse_hooks_on_edges(const Traced& traced, const std::vector<torch::autograd::Node*>& nodes) {
  bool hooked = false;
  for (const TracedInput& input : traced.tracer->inputs())
    hooked =
        hooked || (input.leaf.requires_grad() && (!torch::autograd::impl::hooks(input.leaf).empty() ||
                                                  torch::autograd::impl::post_acc_grad_hooks(input.leaf)));
  for (torch::autograd::Node* node : nodes)
    hooked = hooked || (!node->tensor_pre_hooks().empty() && node->name() == "tandem::InputBoundary");
  for (const at::Tensor& output : traced.outputs)
    hooked =
        hooked || (output.defined() && output.grad_fn() && !output.grad_fn()->tensor_pre_hooks().empty());
  if (hooked) throw RunEagerly("the function registers a hook on a tensor that it was given or returns");
}

/// Gradients are retained by the caller's tensors, not by the fakes that stand for them.
void settle_hooks(const Traced& traced, const Tensors& ends) {
  const auto nodes = nodes_behind(ends);
  refuse_hooks_on_edges(traced, nodes);
  for (torch::autograd::Node* node : nodes) node->retains_grad_hooks().clear();
}

void settle_histories(const Traced& traced) {
  const Tensors ends = ends_of(traced);
  try {
    take_over_reentrant(*traced.tracer, ends);
    lead_to_fakes(*traced.tracer, ends);
    traced.tracer->settle_captures();
    settle_hooks(traced, ends);
  } catch (const c10::Error& error) {
    // Asking a view for its history is an error where its base was written in a way that autograd forbids; in
    // eager nobody may ever ask.
    throw RunEagerly(std::string("libtorch refuses the gradients of a tensor that it returns: ") +
                     error.what_without_backtrace());
  }
}

std::vector<const c10::TensorImpl*> references_of(const Traced& traced,
                                                  const std::vector<TracedMember>* members) {
  std::vector<const c10::TensorImpl*> held;
  for (const at::Tensor& argument : traced.arguments) held.push_back(argument.unsafeGetTensorImpl());
  for (const at::Tensor& output : traced.outputs) held.push_back(output.unsafeGetTensorImpl());
  if (members)
    for (const TracedMember& member : *members) held.push_back(member.fake.unsafeGetTensorImpl());
  return held;
}

/// Nothing of a trace stays in the user's objects, also where the program failed.
void leave_no_fakes(Traced& traced, const std::vector<TracedMember>* members) {
  at::autocast::clear_cache();
  if (drop_garbage()) drop_garbage()();
  give_data(*traced.tracer, traced.tracer->owned_by_program(references_of(traced, members)));
}

/// Besides what can be counted.
bool owns_fakes_in_its_history(const Traced& traced) {
  return traced.tracer->met_saved_tensor_hooks() || traced.tracer->met_view_functions() ||
         has_own_code(traced);
}

void run_traced(const detail::Program& program, Traced& traced) {
  Tracer& tracer = *traced.tracer;
  // Casts that autocast remembers must not outlive the trace, nor may it see those from before.
  at::autocast::clear_cache();
  tracer.record([&] {
    detail::Returned returned = run_on_fakes(program, traced.arguments);
    traced.structure = std::move(returned.structure);
    for (at::Tensor& output : returned.tensors)
      traced.outputs.push_back(!output.defined() || as_fake(output) ? std::move(output)
                                                                    : tracer.twin(output));
  });
  at::autocast::clear_cache();
  take_gradients(traced);
}

/// Contexts of custom functions and hooks own fakes as well, and go with the history that they belong to: so
/// the program is traced once more, and the history dropped.
bool outlives_its_history(const detail::Program& program, const Tensors& arguments, const Tensors& leaves) {
  Traced traced;
  traced.tracer = std::make_unique<Tracer>(false);
  traced.arguments = traced.tracer->add_arguments(arguments);
  traced.tracer->remember_gradients(leaves);
  const BasesOfArguments bases(arguments);
  try {
    run_traced(program, traced);
  } catch (const Error&) {
    // It comes upon what the first trace left.
    give_back_captures(*traced.tracer, bases);
    leave_no_fakes(traced, nullptr);
    return true;
  }
  traced.arguments.clear();
  traced.outputs.clear();
  traced.tracer->drop_fakes();
  if (drop_garbage()) drop_garbage()();
  const std::vector<FakePtr> alive = traced.tracer->owned_by_program({});
  give_data(*traced.tracer, alive);
  return !alive.empty();
}

/// What owns a fake besides the trace is the program's state, unless it is garbage or belongs to the history.
void find_kept(const detail::Program& program, const Tensors& arguments, Traced& traced,
               const TraceRequest& request) {
  traced.kept = traced.tracer->owned_by_program(references_of(traced, request.members));
  if (traced.kept.empty()) return;
  if (drop_garbage()) {
    traced.kept.clear();
    drop_garbage()();
    traced.kept = traced.tracer->owned_by_program(references_of(traced, request.members));
  }
  if (!traced.kept.empty() && !request.members && owns_fakes_in_its_history(traced) &&
      !outlives_its_history(program, arguments, request.leaves))
    traced.kept.clear();
}

void refuse_what_was_met(const Tracer& tracer) {
  if (!tracer.refusal().empty()) throw RunEagerly(tracer.refusal());
}

Traced trace_once(const detail::Program& program, const Tensors& arguments, const TraceRequest& request) {
  if (!request.is_check) count("trace");
  Traced traced;
  traced.tracer = std::make_unique<Tracer>(request.record_locations);
  Tracer& tracer = *traced.tracer;
  traced.arguments = tracer.add_arguments(arguments);
  tracer.remember_gradients(request.leaves);
  const BasesOfArguments bases(arguments);
  SeedWatch seeds(arguments, tracer.draws());
  tracer.ask_for_seeds(&seeds);
  try {
    run_traced(program, traced);
    for (const at::Tensor& output : traced.outputs)
      if (output.defined()) tracer.settle_output(output);
  } catch (...) {
    give_back_captures(tracer, bases);
    leave_no_fakes(traced, request.members);
    refuse_what_was_met(tracer);
    throw;
  }
  tracer.ask_for_seeds(nullptr);
  tracer.leave_outside_histories();
  traced.forward_nodes = tracer.graph().nodes().size();
  find_kept(program, arguments, traced, request);
  try {
    const bool is_replayed = !traced.kept.empty() && can_be_replayed(traced);
    if (!is_replayed) refuse_what_was_met(tracer);
    if (seeds.was_set()) throw RunEagerly("the function seeds a random number generator, or sets its state");
    refuse_unseen_effects(tracer, bases, is_replayed);
    refuse_views_that_start_to_require_grad(tracer);
    if (traced.kept.empty())
      settle_histories(traced);
    else
      tracer.take_snapshots();
  } catch (...) {
    give_back_captures(tracer, bases);
    give_data(tracer, traced.kept);
    throw;
  }
  return traced;
}

}  // namespace

Traced trace_forward(const detail::Program& program, const Tensors& arguments, const TraceRequest& request) {
  try {
    return trace_once(program, arguments, request);
  } catch (const TraceAgain&) {
    return trace_once(program, arguments, request);
  }
}

size_t count_gradients(const std::vector<TracedGradient>& gradients) {
  return size_t(std::count_if(gradients.begin(), gradients.end(),
                              [](const TracedGradient& gradient) { return gradient.output.has_value(); }));
}

Tensors ends_of(const Traced& traced) {
  Tensors ends = traced.outputs;
  for (const FakePtr& fake : traced.kept) ends.emplace_back(fake);
  for (const TracedInput& input : traced.tracer->inputs()) ends.push_back(input.visible);
  Tensors bases;
  for (const at::Tensor& end : ends)
    if (end.defined() && end.is_view() && as_fake(at::Tensor(end._base()))) bases.emplace_back(end._base());
  ends.insert(ends.end(), bases.begin(), bases.end());
  return ends;
}

/// A view whose base was written in a way that autograd forbids may not be asked; its base may.
static bool may_be_asked_for_history(const at::Tensor& tensor) try {
  if (tensor.defined()) tensor.grad_fn();
  return true;
} catch (const c10::Error&) {
  return false;
}

bool has_own_code(const Traced& traced) {
  Tensors ends = ends_of(traced);
  std::erase_if(ends, [](const at::Tensor& end) { return !may_be_asked_for_history(end); });
  const auto nodes = nodes_behind(ends);
  return std::any_of(nodes.begin(), nodes.end(),
                     [](torch::autograd::Node* node) { return runs_own_code(*node) && !is_boundary(*node); });
}

std::string describe_kept(const Traced& traced) {
  const std::string text = "a tensor of sizes " + dims_word(traced.kept[0]->sizes());
  if (const Node* maker = maker_of(traced.tracer->graph(), traced.kept[0]->value))
    return text + ", made by " + full_name(maker->op) +
           (maker->location.empty() ? "" : " at " + maker->location);
  return text + ", which it was given";
}

}  // namespace tandem
