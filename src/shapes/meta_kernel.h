/// libtorch's own Meta kernels.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

namespace tandem {

struct MetaKernel {
  c10::KernelFunction kernel;
  bool composite = false;  ///< calls other operators, which may have no such kernel
};

/// The kernel that tells the shapes of an operator's results, or nothing. For ATen's operators it is
/// libtorch's own even where a host, as Python does for more than a thousand of them, has put another before
/// it: what is recorded must not depend on who records it.
std::optional<MetaKernel> find_meta_kernel(const c10::OperatorHandle& op);

/// Whether a host has put Meta kernels of its own before libtorch's.
bool host_has_meta_kernels();

}  // namespace tandem
