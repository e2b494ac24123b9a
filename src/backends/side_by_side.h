/// Matrix products that wait for nothing of each other, run at once, each on one thread.
#pragma once

#include <tandem/graph.h>

#include "backends/calls.h"

namespace tandem {

/// What runs at once: a graph of one product each. Its inputs and outputs follow each other, product by
/// product, in the call that stands for all of them.
using SideBySide = std::vector<Graph>;

/// Puts products together where that takes less time than so many threads take for one after the other: those
/// of small matrices, for which threads are begun, waited for and given too little each. What is found is
/// added to `found`, and the graph calls it by its number there.
Graph put_side_by_side(Graph graph, int64_t threads, std::vector<SideBySide>& found);

const c10::OperatorHandle& side_by_side_operator();

std::unique_ptr<Call> make_side_by_side_call(const CallSite& site, const SideBySide& products);

}  // namespace tandem
