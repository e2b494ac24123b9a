/// How long a node takes, where nobody has measured it.
#pragma once

#include <tandem/partition.h>

namespace tandem {

/// Arithmetic of a matrix product, convolution or attention: two operations a product.
double flops(const Graph& graph, const Node& node);

/// Seconds on an ordinary machine: what is moved, what is computed, and what a call costs; views take none.
double typical_seconds(const Graph& graph, const Node& node);

/// The model that a context asks for, else the built-in one.
CostModel cost_model_of(const PartitionContext& context);

}  // namespace tandem
