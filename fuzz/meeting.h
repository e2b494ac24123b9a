/// Where gradients meet in an autograd graph.
#pragma once

#include <tandem/graph.h>

namespace tandem::fuzz {

/// How many sums of two gradients the backward of the roots makes, when they are differentiated together.
size_t sums_of_gradients(const Tensors& roots);

/// Whether the program registered hooks on the way back from these.
bool has_hooks(const Tensors& roots);

/// Whether something on the way back from these wrote a part of a tensor.
bool writes_parts(const Tensors& roots);

/// Whether what a tensor has its history from gave it other sizes or strides, and no other tensor.
bool was_reshaped_in_place(const at::Tensor& given);

}  // namespace tandem::fuzz
