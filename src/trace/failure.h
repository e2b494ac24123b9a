/// The error that a recorded call raised, for callers behind code that replaces exceptions by its own, as the TorchScript interpreter does.
#pragma once

#include <exception>

namespace tandem {

/// The last error that recording raised on this thread; null when there was none, or after it was set to null.
std::exception_ptr& last_failure();

/// Throws the last failure anew when it says that something cannot be traced, which nobody in between may hide; forgets it otherwise.
void rethrow_refusal();

}  // namespace tandem
