/// The autograd nodes of a compiled call.
#pragma once

#include "runtime/wrappers.h"

namespace tandem {

/// Makes a node for each piece of the history, and these the gradients of the call's differentiable results.
void attach_compiled_nodes(RunningCall& call);

/// The same for an output that is a view of an input and has a history of its own, once it is made.
void attach_to_view(RunningCall& call, size_t output);

/// Hands the nodes what their backwards read; a write after this to memory it shares is an error when the
/// backward runs, as in eager.
void save_values(RunningCall& call);

}  // namespace tandem
