/// How draws of libtorch's are written with counter-based random numbers.
#pragma once

#include "passes/formulas.h"

namespace tandem {

/// The seed of a call, and which of its draws this one is.
struct CounterDraw {
  Value seed;
  int64_t stream;
};

/// Whether a draw has a formula: its operator, and the numbers that it is given.
bool has_counter_formula(const Graph& graph, const Node& draw);

/// The values that take the place of those that the node makes, as a decomposition returns them.
std::vector<Value> counter_formula(Graph& graph, const Node& node, const CounterDraw& draw);

/// The operators that have formulas.
std::vector<std::string> counter_operators();

}  // namespace tandem
