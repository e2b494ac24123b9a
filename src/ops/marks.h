/// Operators that compute nothing: a program says by them what it wants kept for its backward.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace tandem {

/// tandem::must_save and tandem::prefer_recompute: each reads one tensor, and the partitioner is told.
const c10::OperatorHandle& must_save_operator();
const c10::OperatorHandle& prefer_recompute_operator();

}  // namespace tandem
