#include "aot/traced.h"

#include <ATen/autocast_mode.h>

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "aot/replay.h"
#include "base/counters.h"
#include "base/history.h"
#include "base/host.h"
#include "graph/uses.h"
#include "graph/vocabulary.h"
#include "ops/facts.h"
#include "trace/boundaries.h"
#include "trace/custom_edges.h"
#include "trace/refuse.h"
#include "trace/seed_watch.h"

namespace tandem {
namespace {

/// Whether what arguments are views of requires grad, as it is now: a capture may be changed before it is met.
class BasesOfArguments {
 public:
  explicit BasesOfArguments(const Tensors& arguments) {
    for (const at::Tensor& argument : arguments)
      if (argument.defined() && argument.is_view() && argument._base().is_leaf()) kept_.emplace_back(argument._base(), argument._base().requires_grad());
  }
  /// Whether one had to be put back.
  bool restore() const {
    bool changed = false;
    for (const auto& [base, requires_grad] : kept_) {
      if (base.requires_grad() == requires_grad) continue;
      base.set_requires_grad(requires_grad);
      changed = true;
    }
    return changed;
  }

 private:
  std::vector<std::pair<at::Tensor, bool>> kept_;
};

/// Captured leaves have the gradients again that they had; what the program put there goes out of the trace as one more output.
void take_gradients(Traced& traced) {
  for (const at::Tensor& leaf : traced.tracer->leaves_with_other_gradients()) traced.tracer->twin(leaf);
  for (const TracedInput& input : traced.tracer->inputs()) {
    if (!input.captured || !input.real.defined() || !input.real.is_leaf()) continue;
    at::Tensor& gradient = input.real.mutable_grad();
    if (gradient.is_same(input.grad) || (gradient.defined() && !as_fake(gradient))) continue;
    TracedGradient& taken = traced.gradients.emplace_back(input.value);
    if (gradient.defined()) {
      taken.output = traced.outputs.size();
      traced.outputs.push_back(gradient);
    }
    gradient = input.grad;
  }
}

/// Captured tensors as they were before the program asked them to require grad or set their gradients; empty when it did neither.
std::string give_back_captures(const Tracer& tracer, const BasesOfArguments& bases) {
  std::string changed;
  for (const TracedInput& input : tracer.inputs()) {
    if (!input.captured || !input.real.defined() || !input.real.is_leaf()) continue;
    if (at::Tensor real = input.real; real.requires_grad() != input.required_grad) {
      real.set_requires_grad(input.required_grad);
      changed = "requires_grad";
    }
    if (!input.real.grad().is_same(input.grad)) {
      input.real.mutable_grad() = input.grad;
      changed = "the gradient";
    }
  }
  if (bases.restore()) changed = "requires_grad";
  return tracer.restore_gradients() ? "the gradient" : changed;
}

/// What a program does to its inputs besides operators: seen afterwards, and left to eager.
void refuse_unseen_effects(const Tracer& tracer, const TracedInput& input) {
  if (input.real.requires_grad() && (!input.visible.requires_grad() || input.visible.is_leaf() != input.real.is_leaf()))
    throw RunEagerly("the function detaches an input in place");
  const at::Tensor& gradient = input.leaf.unsafeGetTensorImpl()->grad();   // of what is no leaf any more, asking the tensor itself warns
  if (!gradient.defined()) return;
  if (input.captured || !input.real.is_leaf() || !gradient.is_same(input.real.grad())) throw RunEagerly("the function calls backward() on an input");
  if (tracer.has_met(gradient)) throw RunEagerly("the function reads the gradient of an argument");
}

/// Views of a captured tensor require grad with it, so all captures are given back before anything is looked at.
void refuse_unseen_effects(const Tracer& tracer, const BasesOfArguments& bases) {
  if (std::string changed = give_back_captures(tracer, bases); !changed.empty()) throw RunEagerly("the function changes " + changed + " of a tensor that it captured");
  for (const TracedInput& input : tracer.inputs()) refuse_unseen_effects(tracer, input);
}

/// A view that starts to require grad has a base that does not, which its fake knows nothing of.
void refuse_views_that_start_to_require_grad(const Tracer& tracer) {
  for (const TracedInput& input : tracer.inputs())
    if (!input.required_grad && input.visible.requires_grad() && input.visible.is_leaf() && input.real.is_view())
      throw RunEagerly("an input that is a view of another tensor starts to require grad");
}

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

/// A hook on a tensor that the caller has as well stays with the tensor: it sees gradients that come from elsewhere, and it runs before the caller's own.
void refuse_hooks_on_edges(const Traced& traced, const std::vector<torch::autograd::Node*>& nodes) {
  bool hooked = false;
  for (const TracedInput& input : traced.tracer->inputs())
    hooked = hooked || (input.leaf.requires_grad() && (!torch::autograd::impl::hooks(input.leaf).empty() || torch::autograd::impl::post_acc_grad_hooks(input.leaf)));
  for (torch::autograd::Node* node : nodes) hooked = hooked || (!node->tensor_pre_hooks().empty() && node->name() == "tandem::InputBoundary");
  for (const at::Tensor& output : traced.outputs) hooked = hooked || (output.defined() && output.grad_fn() && !output.grad_fn()->tensor_pre_hooks().empty());
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
    lead_to_fakes(*traced.tracer, ends);
    traced.tracer->settle_captures();
    settle_hooks(traced, ends);
  } catch (const c10::Error& error) {
    // Asking a view for its history is an error where its base was written in a way that autograd forbids; in eager nobody may ever ask.
    throw RunEagerly(std::string("libtorch refuses the gradients of a tensor that it returns: ") + error.what_without_backtrace());
  }
}

std::vector<const c10::TensorImpl*> references_of(const Traced& traced, const std::vector<TracedMember>* members) {
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
  return traced.tracer->met_saved_tensor_hooks() || traced.tracer->met_view_functions() || has_own_code(traced);
}

void run_traced(const detail::Program& program, Traced& traced) {
  Tracer& tracer = *traced.tracer;
  // Casts that autocast remembers must not outlive the trace, nor may it see those from before.
  at::autocast::clear_cache();
  tracer.record([&] {
    detail::Returned returned = run_on_fakes(program, traced.arguments);
    traced.structure = std::move(returned.structure);
    for (at::Tensor& output : returned.tensors)
      traced.outputs.push_back(!output.defined() || as_fake(output) ? std::move(output) : tracer.twin(output));
  });
  at::autocast::clear_cache();
  take_gradients(traced);
}

/// Contexts of custom functions and hooks own fakes as well, and go with the history that they belong to: so the program is traced once more, and the history dropped.
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
void find_kept(const detail::Program& program, const Tensors& arguments, Traced& traced, const TraceRequest& request) {
  traced.kept = traced.tracer->owned_by_program(references_of(traced, request.members));
  if (traced.kept.empty()) return;
  if (drop_garbage()) {
    traced.kept.clear();
    drop_garbage()();
    traced.kept = traced.tracer->owned_by_program(references_of(traced, request.members));
  }
  if (!traced.kept.empty() && !request.members && owns_fakes_in_its_history(traced) && !outlives_its_history(program, arguments, request.leaves)) traced.kept.clear();
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
    throw;
  }
  tracer.ask_for_seeds(nullptr);
  tracer.leave_outside_histories();
  traced.forward_nodes = tracer.graph().nodes().size();
  find_kept(program, arguments, traced, request);
  try {
    if (seeds.was_set()) throw RunEagerly("the function seeds a random number generator, or sets its state");
    refuse_unseen_effects(tracer, bases);
    refuse_views_that_start_to_require_grad(tracer);
    if (traced.kept.empty()) settle_histories(traced);
    else tracer.take_snapshots();
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
  return size_t(std::count_if(gradients.begin(), gradients.end(), [](const TracedGradient& gradient) { return gradient.output.has_value(); }));
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
  return std::any_of(nodes.begin(), nodes.end(), [](torch::autograd::Node* node) { return runs_own_code(*node) && !is_boundary(*node); });
}

std::string describe_kept(const Traced& traced) {
  const std::string text = "a tensor of sizes " + dims_word(traced.kept[0]->sizes());
  if (const Node* maker = maker_of(traced.tracer->graph(), traced.kept[0]->value)) return text + ", made by " + full_name(maker->op) + (maker->location.empty() ? "" : " at " + maker->location);
  return text + ", which it was given";
}

}  // namespace tandem
