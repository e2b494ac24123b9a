/// Matrix products: calls of a library that computes on one thread where it is called from one of several.
#pragma once

#include "backends/calls.h"

namespace tandem {

/// Of matrices in float or double on the CPU.
bool is_product(const Graph& graph, const Node& node);

/// A product on the CPU that is given memory which is kept; null for another operator.
std::unique_ptr<Call> make_product_call(const CallSite& site);

}  // namespace tandem
