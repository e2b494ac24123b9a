/// What lies between a forward and its backward, told to people.
#pragma once

#include <tandem/partition.h>

namespace tandem {

/// One line a saved value; `returned` counts the results of the forward that are not saved values, `marked`
/// are the places of saved values that the program marked.
std::vector<SavedValue> describe_saved(const Partition& halves, size_t returned, const CostModel& cost_model,
                                       const std::vector<size_t>& marked = {});

}  // namespace tandem
