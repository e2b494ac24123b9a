/// Where in the user's program the current call comes from.
#pragma once

#include <functional>
#include <string>

#include "base/for_python.h"

namespace tandem {

/// Where a language above C++ sets what it knows of its own position; asked first, on any thread.
TANDEM_FOR_PYTHON std::function<std::string()>& host_location();

/// "file:line" of the innermost frame that belongs neither to libtorch, nor to Tandem, nor to the C++
/// library; a function's name where there is no debug information; empty where nothing can be said. Inside
/// TorchScript, the script's own file and line.
std::string user_location();

}  // namespace tandem
