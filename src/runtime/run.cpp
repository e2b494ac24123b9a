// One run of compiled code: the forward, and the wrappers around it.
#include <ATen/autocast_mode.h>

#include "runtime/wrappers.h"

namespace tandem {
namespace {

/// What the backward reads of an input keeps its sizes and strides, even where the caller's tensor is about
/// to change them.
Tensors graph_inputs(const RunningCall& call) {
  Tensors inputs(call.inputs.begin(), call.inputs.begin() + int64_t(call.entry->graph_inputs()));
  if (call.entry->changes_metadata)
    for (size_t i = 0; i < inputs.size(); ++i)
      if (call.entry->plan().roles.inputs[i].metadata_written) inputs[i] = inputs[i].detach();
  return inputs;
}

}  // namespace

detail::Returned run_compiled(std::shared_ptr<Entry> entry, Tensors inputs) {
  RunningCall call;
  call.inputs = std::move(inputs);
  call.entry = std::move(entry);
  {
    c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    call.results = call.entry->forward->run(graph_inputs(call));
  }
  const size_t returned = call.entry->plan().returned.size();
  if (call.results.size() != returned + call.entry->saved_count)
    throw Error("the compiled forward returned " + std::to_string(call.results.size()) +
                " tensors instead of " + std::to_string(returned + call.entry->saved_count));
  call.saved.assign(std::make_move_iterator(call.results.begin() + int64_t(returned)),
                    std::make_move_iterator(call.results.end()));
  call.results.resize(returned);
  for (const auto& wrapper : call.entry->wrappers) wrapper->after(call);
  return {std::move(call.outputs), call.entry->structure};
}

}  // namespace tandem
