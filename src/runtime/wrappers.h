/// What happens around the compiled code of a call, as one list.
#pragma once

#include "base/autograd.h"
#include "runtime/entry.h"

namespace tandem {

/// One call on its way through the wrappers.
struct RunningCall {
  std::shared_ptr<Entry> entry;
  Tensors inputs;   ///< real tensors, one per graph input
  Tensors results;  ///< what the forward graph returns, saved values left out
  Tensors saved;
  Tensors outputs;             ///< what the caller gets
  Tensors siblings;            ///< all that the operator gave which made a view of these last
  std::vector<NodePtr> nodes;  ///< one for each piece, where outputs have gradients
};

/// Takes steps in making what the caller gets.
void make_outputs(RunningCall& call, const std::vector<OutputStep>& steps);

/// The wrappers that this entry's calls need, in the order in which they run.
std::vector<std::unique_ptr<Wrapper>> make_wrappers(const Entry& entry);

/// Runs the forward on `inputs`, one per input of the contract, and the wrappers behind it.
detail::Returned run_compiled(std::shared_ptr<Entry> entry, Tensors inputs);

}  // namespace tandem
