/// What operators cost on this very machine, measured once and noted beside the cache.
#pragma once

#include <tandem/options.h>

#include "partition/cost_model.h"

namespace tandem {

struct MachineRates {
  Rates rates;
  bool is_measured;  ///< else the built-in ones: TANDEM_COST_MODEL=builtin, or measuring failed
};

/// Those of a device and libtorch's number of threads, as an earlier process noted them in the cache's
/// folder, else measured now.
MachineRates machine_rates(c10::Device device, const CacheOptions& cache = {});

/// Gives options whose budget asks for times the machine's own cost model, for the devices of a trace, unless
/// they have one.
void take_machine_costs(Options& options, const Graph& trace);

}  // namespace tandem
