/// Keeping less than a value where a backward reads less than all of it.
#pragma once

#include <tandem/partition.h>

namespace tandem {

/// Which values may get a narrow form.
struct Narrowing {
  /// Whether making a narrow form takes no time, because a backend fuses that; empty: it may take some.
  std::function<bool(const Graph&, const Node&)> fuses = {};
  /// Of an order above the first: the joint graph below. Of the forward, what is not in its forward is a
  /// backward's too.
  const Joint* below = nullptr;
};

/// The joint graph with another way to each value of the forward, in memory that the caller does not have, of
/// which a reader uses but a part: whether elements are above zero (the gradient of relu), places that are
/// known to be small (those of max_pool), sizes and strides alone (pooling). The forward makes the narrow
/// form, and the backward reads it; no bit of a result changes. A partitioner may keep the one or the other.
Joint with_narrow_forms(Joint joint, const Narrowing& narrowing);

/// Nodes of the forward whose results the backward alone reads, by their numbers.
std::vector<bool> read_by_backward_alone(const Joint& joint);

/// The same graph without narrow forms that it makes itself out of what it has: they are a detour.
Graph without_detours(Graph half);

}  // namespace tandem
