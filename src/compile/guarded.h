/// Code of a compiler's made to keep what `Executable` says of it.
#pragma once

#include <tandem/backend.h>

namespace tandem {

/// `code`, or something around it where it is to be shielded from autograd, entered by one thread at a time,
/// or returns other strides than `graph` has; throws Error that names `maker` where the strides that it
/// speaks of are no strides of its outputs.
std::shared_ptr<Executable> guarded(std::shared_ptr<Executable> code, const Graph& graph,
                                    const std::string& maker);

}  // namespace tandem
