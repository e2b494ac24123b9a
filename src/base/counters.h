/// The numbers that `tandem::counters()` shows.
#pragma once

#include <cstdint>

namespace tandem {

/// Adds to a counter; the name is one of those API promises list, a string literal.
void count(const char* name, uint64_t by = 1);
void reset_counters();

}  // namespace tandem
