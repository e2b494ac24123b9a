/// Decompositions for a backend that computes graphs in loops of its own.
#pragma once

#include <tandem/passes.h>

namespace tandem {

/// The default table, and rows for what is made of pointwise operators, folds (sum, mean, amax, amin, all)
/// and views; views under rarer names become `view` and `split`. All but a user's own rows answer calls on
/// tensors of float or double on the CPU alone; the further rows leave those on tensors without elements.
/// sigmoid_backward, tanh_backward and threshold_backward, which loops compute in one step, have no row.
DecompositionTable loop_decompositions();

}  // namespace tandem
