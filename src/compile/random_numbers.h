/// Which random numbers compiled code draws.
#pragma once

#include "compile/compilation.h"

namespace tandem {

/// Whether compiled code gives other numbers than the program's draws from the generator.
bool draws_counter_numbers(const Compilation& compilation);

/// A joint graph of the program with the random numbers that its options ask for; all of them get the same.
Graph with_wanted_numbers(Graph joint, Compilation& compilation);

}  // namespace tandem
