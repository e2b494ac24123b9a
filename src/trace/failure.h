/// The error that a recorded call raised, for callers behind code that replaces exceptions by its own, as the
/// TorchScript interpreter does.
#pragma once

#include <exception>
#include <string>

#include "base/for_python.h"

namespace tandem {

/// The last error that recording raised on this thread; null when there was none, or after it was set to
/// null.
TANDEM_FOR_PYTHON std::exception_ptr& last_failure();

/// Throws the last failure anew when it says that something cannot be traced, which nobody in between may
/// hide; forgets it otherwise.
TANDEM_FOR_PYTHON void rethrow_refusal();

/// Throws a refusal from inside autograd's engine.
template <class Refusal>
[[noreturn]] void refuse(const std::string& reason) {
  try {
    throw Refusal(reason);
  } catch (...) {
    last_failure() = std::current_exception();
    throw;
  }
}

}  // namespace tandem
