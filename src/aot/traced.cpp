#include "aot/traced.h"

#include <ATen/autocast_mode.h>

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <set>

#include "base/counters.h"
#include "base/history.h"
#include "trace/custom_edges.h"
#include "trace/refuse.h"

namespace tandem {
namespace {

/// A gradient inside the function: autograd may not know a captured tensor by its fake, nor that nobody reads what was written.
bool comes_from_autograd(std::string_view error) {
  static constexpr std::string_view complaints[] = {"does not require grad", "appears to not have been used in the graph", "has been modified by an inplace operation"};
  return std::any_of(std::begin(complaints), std::end(complaints), [&](std::string_view complaint) { return error.find(complaint) != error.npos; });
}

/// Captured tensors as they were before the program asked them to require grad or set their gradients; empty when it did neither.
std::string give_back_captures(const Tracer& tracer) {
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
  return changed;
}

/// What a program does to its inputs besides operators: seen afterwards, and left to eager.
void refuse_unseen_effects(const Tracer& tracer, const TracedInput& input) {
  if (input.real.requires_grad() && (!input.visible.requires_grad() || input.visible.is_leaf() != input.real.is_leaf()))
    throw RunEagerly("the function detaches an input in place");
  const at::Tensor& gradient = input.leaf.grad();
  if (!gradient.defined()) return;
  if (input.captured || !input.real.is_leaf() || !gradient.is_same(input.real.grad())) throw RunEagerly("the function calls backward() on an input");
  if (tracer.has_met(gradient)) throw RunEagerly("the function reads the gradient of an argument");
}

/// Views of a captured tensor require grad with it, so all captures are given back before anything is looked at.
void refuse_unseen_effects(const Tracer& tracer) {
  if (std::string changed = give_back_captures(tracer); !changed.empty()) throw RunEagerly("the function changes " + changed + " of a tensor that it captured");
  for (const TracedInput& input : tracer.inputs()) refuse_unseen_effects(tracer, input);
}

/// A view that starts to require grad has a base that does not, which its fake knows nothing of.
void refuse_views_that_start_to_require_grad(const Tracer& tracer) {
  for (const TracedInput& input : tracer.inputs())
    if (!input.required_grad && input.visible.requires_grad() && input.visible.is_leaf() && input.real.is_view())
      throw RunEagerly("an input that is a view of another tensor starts to require grad");
}

/// Fakes of inputs do not know that one is a view of another.
void refuse_inputs_that_share_memory(const Tracer& tracer, const std::string& said) {
  std::set<int32_t> storages;
  for (const TracedInput& input : tracer.inputs())
    if (!storages.insert(tracer.graph().meta(input.value).storage).second) throw RunEagerly("it is given tensors that share memory, and cannot be traced: " + said);
}

/// Where an error may come from what fakes do not know, eager knows better, or says the same.
detail::Returned run_on_fakes(const detail::Program& program, const Tensors& arguments, const Tracer& tracer) {
  try {
    return program(arguments);
  } catch (const c10::Error& error) {
    refuse_unseen_effects(tracer);
    const std::string said = error.what_without_backtrace();
    if (asks_for_data(said)) refuse_data_access();
    if (comes_from_autograd(said)) throw RunEagerly("autograd inside the function refuses a gradient: " + said);
    refuse_views_that_start_to_require_grad(tracer);
    refuse_inputs_that_share_memory(tracer, said);
    throw;
  } catch (const UnsupportedError&) {
    give_back_captures(tracer);
    throw;
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
  Tensors ends = traced.outputs;
  for (const TracedInput& input : traced.tracer->inputs()) ends.push_back(input.visible);
  try {
    lead_to_fakes(*traced.tracer, ends);
    traced.tracer->settle_captures();
    settle_hooks(traced, ends);
  } catch (const c10::Error& error) {
    // Asking a view for its history is an error where its base was written in a way that autograd forbids; in eager nobody may ever ask.
    throw RunEagerly(std::string("libtorch refuses the gradients of a tensor that it returns: ") + error.what_without_backtrace());
  }
}

}  // namespace

Traced trace_forward(const detail::Program& program, const Tensors& arguments, bool record_locations) {
  count("trace");
  Traced traced;
  traced.tracer = std::make_unique<Tracer>(record_locations);
  Tracer& tracer = *traced.tracer;
  traced.arguments = tracer.add_arguments(arguments);
  // Casts that autocast remembers must not outlive the trace, nor may it see those from before.
  at::autocast::clear_cache();
  tracer.record([&] {
    detail::Returned returned = run_on_fakes(program, traced.arguments, tracer);
    traced.structure = std::move(returned.structure);
    for (at::Tensor& output : returned.tensors)
      traced.outputs.push_back(!output.defined() || as_fake(output) ? std::move(output) : tracer.twin(output));
  });
  at::autocast::clear_cache();
  for (const at::Tensor& output : traced.outputs)
    if (output.defined()) tracer.settle_output(output);
  refuse_unseen_effects(tracer);
  refuse_views_that_start_to_require_grad(tracer);
  settle_histories(traced);
  traced.forward_nodes = tracer.graph().nodes().size();
  return traced;
}

}  // namespace tandem
