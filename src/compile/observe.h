/// The one place that every graph of a compile passes, for those who look: TANDEM_LOGS, TANDEM_DUMP and
/// TANDEM_TRACE.
#pragma once

#include <tandem/graph.h>

namespace tandem {

class Executable;
struct Contract;

/// What is seen, and where it stands.
struct Sight {
  std::string name;  ///< Options::name
  /// "trace", "joint", "forward", "backward", "inference", "contract"
  const char* what;
  size_t function = 0, signature = 0, order = 1, variant = 0;
};

/// Whether anybody looks: get what takes time only then.
bool is_observed(const char* what);

void observe(const Sight& sight, const Graph& graph);
void observe(const Sight& sight, const Contract& contract);
/// What the code of a graph is made of: TANDEM_DUMP alone.
void observe(const Sight& sight, const Executable& code);

}  // namespace tandem
