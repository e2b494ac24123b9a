/// What the user's own code in a backward, custom autograd functions and hooks, leads to.
#pragma once

#include "trace/tracer.h"

namespace tandem {

/// Tells the tracer whether a backward of these runs code that is not libtorch's. A custom function takes its edges from the tensors that it is given, before any operator is called; where those are real ones that the program captured, the edges behind
/// `ends` lead to their fakes from now on. Throws RunEagerly where that cannot be told.
void lead_to_fakes(Tracer& tracer, const Tensors& ends);

}  // namespace tandem
