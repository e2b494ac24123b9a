/// Gradients that a traced function retains.
#pragma once

#include "aot/visible.h"

namespace tandem {

/// Throws RunEagerly where the function retains the gradient of a tensor that it returns or writes, and
/// computes others that it returns from it, and the history is not cut there: part of that gradient flows
/// inside.
void refuse_gradients_retained_inside(const Traced& traced, const Roles& roles, const VisiblePoints& cuts);

}  // namespace tandem
