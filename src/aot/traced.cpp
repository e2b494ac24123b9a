#include "aot/traced.h"

#include <ATen/autocast_mode.h>

#include "base/counters.h"
#include "trace/refuse.h"

namespace tandem {
namespace {

detail::Returned run_on_fakes(const detail::Program& program, const Tensors& arguments) {
  try {
    return program(arguments);
  } catch (const c10::Error& error) {
    if (asks_for_data(error.what_without_backtrace())) refuse_data_access();
    throw;
  }
}

/// What a program does to its inputs besides operators: seen afterwards, and left to eager.
void refuse_unseen_effects(const Tracer& tracer, const TracedInput& input) {
  if (input.real.requires_grad() && !input.visible.requires_grad()) throw RunEagerly("the function detaches an input in place");
  const at::Tensor& gradient = input.leaf.grad();
  if (!gradient.defined()) return;
  if (input.captured || !input.real.is_leaf() || !gradient.is_same(input.real.grad())) throw RunEagerly("the function calls backward() on an input");
  if (tracer.has_met(gradient)) throw RunEagerly("the function reads the gradient of an argument");
}

}  // namespace

Traced trace_forward(const detail::Program& program, const Tensors& arguments, bool record_locations) {
  count("trace");
  Traced traced;
  traced.tracer = std::make_unique<Tracer>(record_locations);
  Tracer& tracer = *traced.tracer;
  for (const at::Tensor& argument : arguments) traced.arguments.push_back(tracer.add_argument(argument));
  // Casts that autocast remembers must not outlive the trace, nor may it see those from before.
  at::autocast::clear_cache();
  tracer.record([&] {
    detail::Returned returned = run_on_fakes(program, traced.arguments);
    traced.structure = std::move(returned.structure);
    for (at::Tensor& output : returned.tensors)
      traced.outputs.push_back(!output.defined() || as_fake(output) ? std::move(output) : tracer.twin(output));
  });
  at::autocast::clear_cache();
  for (const at::Tensor& output : traced.outputs)
    if (output.defined()) tracer.settle_output(output);
  for (const TracedInput& input : tracer.inputs()) refuse_unseen_effects(tracer, input);
  tracer.settle_captures();
  traced.forward_nodes = tracer.graph().nodes().size();
  return traced;
}

}  // namespace tandem
