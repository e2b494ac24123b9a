/// Which additions may reuse the memory of an operand, as libtorch's autograd engine does when it sums
/// gradients.
#pragma once

#include <tandem/graph.h>

#include <optional>

namespace tandem {

/// Found ahead of time for a whole graph; the call itself still checks that nobody else holds the memory.
class InPlaceAdds {
 public:
  /// `last_read` has for each value the index of the last node that reads it.
  InPlaceAdds(const Graph& graph, const std::vector<int32_t>& last_read);
  /// The argument (0 or 1) into which the node at `index` may add.
  std::optional<size_t> target(size_t index) const {
    return targets_[index] < 0 ? std::nullopt : std::optional<size_t>(targets_[index]);
  }

 private:
  std::vector<int8_t> targets_;
};

}  // namespace tandem
