/// The one autograd node of a compiled call.
#pragma once

#include "runtime/wrappers.h"

namespace tandem {

/// Makes the node of a call the gradient of the call's differentiable results.
void attach_compiled_node(RunningCall& call);

/// Hands the node what the backward reads; a write after this to memory it shares is an error when the backward runs, as in eager.
void save_values(RunningCall& call);

}  // namespace tandem
