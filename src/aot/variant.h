/// Which backward of a compiled function is asked for.
#pragma once

#include <tandem/graph.h>

#include <optional>

namespace tandem {

/// Which tangents arrive, in which layout, and which inputs want a gradient: another combination is another
/// backward. A tangent that requires grad is one that the gradients are to be differentiated by in turn.
struct BackwardVariant {
  std::vector<std::optional<TensorMeta>> tangents;  ///< one per tangent source; nothing: none arrives
  std::vector<bool> wanted;                         ///< one per gradient input
  friend bool operator==(const BackwardVariant&, const BackwardVariant&) = default;
};

}  // namespace tandem
