/// The numbers that `tandem::counters()` shows.
#pragma once

#include <cstdint>

#include "base/for_python.h"

namespace tandem {

/// Adds to a counter; the name is one of those API promises list, a string literal.
TANDEM_FOR_PYTHON void count(const char* name, uint64_t by = 1);
void reset_counters();

}  // namespace tandem
