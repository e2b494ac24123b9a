/// libtorch looks at all classes before it spreads them, and at the largest where it has to find their
/// number.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace tandem {

/// What libtorch's one_hot gives, where the number of classes is known; classes that are none are an error
/// when the code runs, as in eager. Nothing where libtorch need not look.
std::optional<at::Tensor> spread_classes(const at::Tensor& classes, int64_t count);

}  // namespace tandem
