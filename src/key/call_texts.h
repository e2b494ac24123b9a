/// What a traced call is, as texts of a key: lines that are equal in every process that traces the same
/// program on inputs of the same kind.
#pragma once

#include "aot/traced.h"

namespace tandem {

/// The recorded operators, a line each, constants as hashes of their data. Source locations are left out.
std::string trace_text(const Graph& trace);
/// Where each operator was called, for programs that asked for it; empty for others.
std::string locations_text(const Graph& trace);
/// Every input as the trace took it, then which of them each argument is. Data and names are left out.
std::string inputs_text(const Traced& traced);
/// The contract with all that it says but names.
std::string contract_text(const Plan& plan);

}  // namespace tandem
