/// Questions about data that have one answer, whatever the data.
#pragma once

#include <tandem/graph.h>

namespace tandem {

/// The one element of `asked`, where the record says what it must be: random numbers between 0 and 1 compared
/// with a number that lies elsewhere, as by layers that are dropped with probability 0.
std::optional<bool> known_answer(const Graph& record, Value asked);

}  // namespace tandem
