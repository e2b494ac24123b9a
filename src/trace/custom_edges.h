/// What the user's own code in a backward, custom autograd functions and hooks, leads to.
#pragma once

#include "trace/tracer.h"

namespace tandem {

/// Leads the edges of custom functions behind `ends` to fakes, and tells the tracer whether a backward runs
/// code that is not libtorch's; throws RunEagerly where an edge cannot be told. A custom function takes its
/// edges from the tensors that it is given, before any operator is called, and those may be real ones that
/// the program captured.
void lead_to_fakes(Tracer& tracer, const Tensors& ends);

}  // namespace tandem
