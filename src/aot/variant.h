/// Which backward of a compiled function is asked for.
#pragma once

#include <tandem/graph.h>

#include <optional>

namespace tandem {

/// One that requires grad is one that the gradients are to be differentiated by in turn.
struct Tangent : TensorMeta {
  bool zero = false;  ///< libtorch's zeros without memory, which derivatives treat otherwise than numbers
  /// none arrives, yet the engine comes by: a custom function on the way is given zeros
  bool undefined = false;
  friend bool operator==(const Tangent&, const Tangent&) = default;
};

/// Which tangents arrive, in which layout, and which inputs want a gradient: another combination is another
/// backward.
struct BackwardVariant {
  std::vector<std::optional<Tangent>> tangents;  ///< one per tangent source; nothing: none arrives
  std::vector<bool> wanted;                      ///< one per gradient input
  friend bool operator==(const BackwardVariant&, const BackwardVariant&) = default;
};

}  // namespace tandem
