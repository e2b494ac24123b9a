/// Calls of a subject, and what eager makes of them.
#pragma once

#include "fuzz/observe.h"

namespace tandem::fuzz {

/// The given tensors of the call that is being made; the compiled function reads its captures from here.
struct Stage {
  Scene scene;
};

Callable callable_of(const Subject& subject, const std::shared_ptr<Stage>& stage);

/// All calls of one function, each on new data, the captured tensors being the same; made as `eager` was,
/// where there is one.
std::vector<Observation> observe_calls(const Callable& program, const std::shared_ptr<Stage>& stage,
                                       const Subject& subject, const std::vector<Expected>& eager = {});

/// Eager's own calls, with how far they move where that is asked for.
std::vector<Expected> expect(const Subject& subject);

}  // namespace tandem::fuzz
