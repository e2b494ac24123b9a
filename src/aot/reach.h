/// Which inputs autograd leads to from the outputs of a traced function.
#pragma once

#include "aot/traced.h"

namespace tandem {

/// Places in `plan.gradient_inputs` of inputs that no source of tangents leads to: eager's engine never comes there, and so neither their hooks nor what they were
/// computed from are asked for anything.
std::vector<size_t> unreached_inputs(const Traced& traced, const Plan& plan);

/// Throws RunEagerly where the function retains the gradient of a tensor that it returns or writes, and computes others that it returns from it: part of that gradient flows inside.
void refuse_gradients_retained_inside(const Traced& traced, const Contract& contract);

}  // namespace tandem
