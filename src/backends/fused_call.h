/// Runs the launches of a group as one call of an interpreted graph.
#pragma once

#include "backends/calls.h"
#include "loops/launch.h"

namespace tandem {

/// The code of a launch; null: the description is interpreted.
using Codes = std::vector<loops::Code>;

/// `fused` outlives the call, and so does its code; metas are those of its inputs and outputs.
struct FusedSite {
  const loops::Fused& fused;
  Codes codes;  ///< one a launch
  std::vector<TensorMeta> inputs, outputs;
};

std::unique_ptr<Call> make_fused_call(const CallSite& site, FusedSite fused);

}  // namespace tandem
