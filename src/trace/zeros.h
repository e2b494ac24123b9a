/// Zero tensors: zeros without memory, which some of libtorch's derivatives give. Kernels of libtorch's that
/// know them do not run while a function is recorded; what they do is done here.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace tandem {

/// Where fakes that are zero tensors are among the arguments, and libtorch gives an answer without computing
/// with them: puts it in their place. Throws libtorch's error where one would be written. False: the call is
/// one like others.
bool answer_for_zeros(const c10::OperatorHandle& op, torch::jit::Stack& stack);

}  // namespace tandem
