/// How long a node takes by what its device does in a second.
#pragma once

#include <tandem/partition.h>

#include "partition/rates.h"

namespace tandem {

/// Arithmetic of a matrix product, convolution or attention: two operations a product.
double flops(const Graph& graph, const Node& node);

using DeviceRates = std::vector<std::pair<c10::Device, Rates>>;

/// Seconds by what is moved, what is computed, and what a call costs; views take none. Devices that are not
/// named have the built-in rates. Its version has the rates in it, rounded.
CostModel cost_model_with(DeviceRates rates, std::string name);

/// The model that a context asks for, else the built-in one.
CostModel cost_model_of(const PartitionContext& context);

}  // namespace tandem
