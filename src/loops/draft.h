/// Puts the expressions of a kernel together: what members of a group compute at each place of one nest.
#pragma once

#include "loops/access.h"
#include "loops/expressions.h"

#include <span>

namespace tandem::loops {

/// A buffer of a kernel to be: the elements of a value that each place of the nest reads or writes.
struct Element {
  Value value;  ///< an anchor; none where all that is asked for is how far the access leads
  Access access;
  friend bool operator==(const Element&, const Element&) = default;
};

struct Draft {
  LoopNest nest;
  Expressions expressions;
  std::vector<Element> loads;  ///< by the buffers that loads name
  struct Stored {
    Element to;
    int32_t expr;
  };
  std::vector<Stored> stores;
  int32_t repeats = 0;  ///< nodes that are computed at a second place of the nest as well
};

/// What a group of nodes is drafted from; all of it outlives the drafts.
struct Source {
  const Graph& graph;
  const std::vector<Value>& anchors;
  const std::vector<int32_t>& makers;  ///< of each value
  const std::vector<int32_t>& twins;   ///< of each value the first one that is the same
};

/// The kernels that compute these nodes, ascending, and store these results of theirs: one, or one for each
/// part of a nest where results are put together of pieces. None where one nest cannot.
std::vector<Draft> draft(const Source& source, std::span<const int32_t> members,
                         std::span<const Value> wanted);

}  // namespace tandem::loops
