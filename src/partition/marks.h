/// What a program marked with tandem::must_save and tandem::prefer_recompute.
#pragma once

#include <tandem/partition.h>

namespace tandem {

/// Values of a joint graph.
struct Marks {
  std::vector<Value> must_save, prefer_recompute;
};

/// Takes the calls that mark something out of a joint graph. What a backward computes again of what is marked
/// must_save, as that of a checkpoint does, it reads where the forward has made it.
Marks take_marks(Joint& joint);

/// What the forward makes in memory of these, which may have been left out themselves, or be kept by the
/// order below.
std::vector<Value> made_in_memory_of(const Graph& graph, const std::vector<Value>& marked);

/// The places of saved values that come from the nodes which make these.
std::vector<size_t> places_made_with(const std::vector<Value>& values, const Partition& halves);

}  // namespace tandem
