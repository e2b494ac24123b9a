/// Why a program is not compiled, as exceptions on their way to whoever runs it instead.
#pragma once

#include <tandem/error.h>

#include "base/for_python.h"

namespace tandem {

/// Thrown where a program is fine but not one that we compile; the caller runs it as it is.
struct TANDEM_FOR_PYTHON RunEagerly : UnsupportedError {
  using UnsupportedError::UnsupportedError;
};

/// Thrown where a program changes something of its own that compiled code would not change again; what does
/// so once may not do it the next time.
struct TANDEM_FOR_PYTHON KeepsState : RunEagerly {
  using RunEagerly::RunEagerly;
};

/// Thrown where the program is to be traced once more, and will go another way.
struct TANDEM_FOR_PYTHON TraceAgain : KeepsState {
  using KeepsState::KeepsState;
};

/// Thrown where not even the original can take the place of compiled code.
struct CannotRun : UnsupportedError {
  using UnsupportedError::UnsupportedError;
};

/// Thrown where a gradient is one that we compile, but not one that is differentiated in turn.
struct NoNextOrder : RunEagerly {
  using RunEagerly::RunEagerly;
};

}  // namespace tandem
