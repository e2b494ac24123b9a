/// Another backward for a forward that already ran.
#pragma once

#include <tandem/partition.h>

namespace tandem {

/// The part of `joint` that computes its gradients from tangents and from values that an earlier forward of the same program saved.
struct Extracted {
  Graph backward;                            ///< takes the saved values it needs, then all tangents
  std::vector<size_t> saved;                 ///< which of the saved ones
};

/// `saved` are values of `saved_in`, a joint graph of the same program; they are found again in `joint` by how they are computed. What was not saved is computed
/// anew; throws Error when that would need an input or a random number that was not kept.
Extracted extract_backward(const Joint& joint, const Joint& saved_in, const std::vector<Value>& saved);

}  // namespace tandem
