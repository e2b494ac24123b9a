/// Everything that can change the code of a traced call, as the components of a key.
#pragma once

#include <tandem/options.h>

#include "aot/traced.h"
#include "key/components.h"

namespace tandem {

struct Fingerprint {
  cache::Components components;
  /// of the components; empty where a constant of the trace has no hash, or is too large to have one made;
  /// then there is an obstacle
  std::string key;
  /// why code for this call is not cached, as the end of a sentence; empty when it can be
  std::string obstacle;
};

/// To be asked between planning and differentiating, on the thread that traced, while the tracer holds the
/// real inputs. Never throws for what a program does.
Fingerprint fingerprint(const Traced& traced, const Plan& plan, const Options& options);

/// Puts what was recorded of its backward into it: where that calls code of the host language's again, no
/// history tells what it does.
void add_backward(Fingerprint& made, const Graph& joint);

/// The components with the text of the trace, which is as long as the program and which a hit has no use for.
cache::Components readable(cache::Components components, const Graph& trace);

}  // namespace tandem
