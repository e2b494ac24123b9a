/// Where gradients meet in an autograd graph.
#pragma once

#include <tandem/graph.h>

namespace tandem::fuzz {

/// How many sums of two gradients the backward of the roots makes, when they are differentiated together.
size_t sums_of_gradients(const Tensors& roots);

}  // namespace tandem::fuzz
