/// How exact what eager computes is, found by asking it again with other rounding.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace tandem::fuzz {

/// How far each element of `seen`, which `eager` gave, moves when the operators of `eager` round otherwise.
/// Undefined where `seen` is, and for what has other sizes whenever they do.
std::vector<at::Tensor> moves_of(const std::vector<at::Tensor>& seen,
                                 const std::function<std::vector<at::Tensor>()>& eager);

}  // namespace tandem::fuzz
