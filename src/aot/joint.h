/// Forward and backward of a traced function as one functional graph.
#pragma once

#include <tandem/partition.h>

#include "aot/traced.h"

namespace tandem {

/// Which tangents arrive, in which layout, and which inputs want a gradient: another combination is another backward.
struct BackwardVariant {
  std::vector<std::optional<TensorMeta>> tangents;   ///< one per tangent source; nothing: none arrives
  std::vector<bool> wanted;                          ///< one per gradient input
  friend bool operator==(const BackwardVariant&, const BackwardVariant&) = default;
};

/// Every tangent arrives laid out like its output, every gradient is wanted.
BackwardVariant expected_variant(const Traced& traced, const Plan& plan);

struct JointGraph {
  Joint joint;
  std::vector<Value> gradients;                      ///< of the wanted gradient inputs, none where there is none
  bool reads_offsets = false;
  size_t nodes_recorded = 0;
  double record_seconds = 0;                         ///< of all this, how long recording the backward took
  int64_t eager_saved_bytes = 0;                     ///< forward storages, neither inputs nor outputs, that the recorded backward reads
};

/// The forward alone.
JointGraph make_inference_graph(const Traced& traced, const Plan& plan);

/// Forward and backward; throws what eager's backward would throw. Nothing when the backward (a hook, a custom function) reached a captured tensor that
/// the forward did not: it is an input now, so plan and ask again.
std::optional<JointGraph> make_joint_graph(Traced& traced, const Plan& plan, const BackwardVariant& variant);

}  // namespace tandem
