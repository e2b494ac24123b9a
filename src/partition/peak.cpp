// The memory of a step, predicted: what an interpreter of both halves holds when.
#include "partition/peak.h"

#include <algorithm>

#include "graph/by_storage.h"
#include "graph/uses.h"

namespace tandem {

int64_t predicted_peak(const Graph& graph, const GivenBytes& given, int64_t& live) {
  const Footprint footprint(graph, given);
  Occupancy occupancy(footprint, live);
  for (size_t n = 0; n < graph.nodes().size(); ++n) occupancy.run(n);
  live = occupancy.live();
  return occupancy.highest();
}

Peaks predicted_peaks(const Partition& halves) {
  Peaks peaks;
  int64_t live = 0;
  peaks.forward = predicted_peak(halves.forward, {}, live);
  peaks.backward = predicted_peak(halves.backward, given_to_backward(halves), live);
  return peaks;
}

GivenBytes given_to_backward(const Partition& halves) {
  const Graph& forward = halves.forward;
  std::unordered_set<int32_t> of_caller =
      storages_of_caller(forward, forward.outputs().size() - halves.saved.size());
  ByStorage<int64_t> sizes(forward);
  for (size_t id = 0; id < forward.value_count(); ++id) {
    const TensorMeta& meta = forward.meta(Value{int32_t(id)});
    int64_t& size = sizes[meta.storage];
    size = std::max(size, meta.storage_bytes());
  }
  GivenBytes given;
  for (size_t i = 0; i < halves.saved.size(); ++i) {
    const TensorMeta& meta = forward.meta(halves.saved[i]);
    const bool is_alone = meta.storage < 0;
    if (is_alone || of_caller.insert(meta.storage).second)
      given.emplace_back(halves.backward.inputs()[i], is_alone ? meta.storage_bytes() : sizes[meta.storage]);
  }
  return given;
}

int64_t predicted_peak_bytes(const Partition& halves) {
  const Peaks peaks = predicted_peaks(halves);
  return std::max(peaks.forward, peaks.backward);
}

}  // namespace tandem
