/// What is left to run of a joint graph when an earlier forward of the same program already ran.
#pragma once

#include <tandem/partition.h>

#include <algorithm>
#include <memory>

namespace tandem {

/// Values that a forward left behind; `joint` is the graph that they are values of. Those that it does not
/// have are what `forward` made besides: copies of what it has, and states of the generator.
struct Kept {
  const Joint& joint;
  const std::vector<Value>& saved;
  const Graph& forward;
  /// where the first inputs of `forward` are among the values saved below
  const std::vector<size_t>& taken;
  /// what the forward's own forward left behind, where it is a gradient
  std::shared_ptr<const Kept> below = nullptr;
  /// places of those saved values that are at hand, in order; null: all are
  const std::vector<size_t>* held = nullptr;
  bool has(size_t place) const { return !held || std::binary_search(held->begin(), held->end(), place); }
};

/// A joint graph whose primals are saved values and tangents.
struct Extracted {
  Joint joint;                ///< takes the saved values it needs, then all tangents
  std::vector<size_t> saved;  ///< which of the saved ones
};

/// The gradients of `joint`, computed from its tangents and from what an earlier forward kept. Kept values
/// are found again by how they are computed. What was not kept is computed anew; throws UnsupportedError when
/// that would need an input that was not kept, or a random number of which neither the value was kept nor the
/// state before it.
Extracted extract_backward(const Joint& joint, const Kept& kept);

/// The same for gradients that are differentiated in turn: the first `tangents` tangents and the first
/// `gradients` gradients belong to a forward, which returns memory of its own, and what follows is its
/// backward. What `also` names is there as well.
Extracted extract_next_order(const Joint& joint, const Kept& kept, size_t tangents, size_t gradients,
                             const std::vector<Value>& also = {});

/// Values of the kept forward that `joint` reads although they can neither be found among the kept ones nor
/// be computed from them.
std::vector<Value> missing_values(const Joint& joint, const Kept& kept);

}  // namespace tandem
