/// The last resort of shape inference: the real kernel on made-up data.
#pragma once

#include "shapes/shapes.h"

namespace tandem {

/// Replaces the arguments on `stack` by the operator's results on meta, found by running it on stand-in data
/// on `device`, and says where each result lives. Results that share memory with an argument do so on meta as
/// well; random generators are left as they were.
Devices run_on_stand_ins(const c10::OperatorHandle& op, c10::Device device, torch::jit::Stack& stack);

}  // namespace tandem
