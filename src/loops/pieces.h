/// Results that are put together of other tensors' elements, which nothing is computed of: index maps.
#pragma once

#include "loops/access.h"

namespace tandem::loops {

/// The box of a result from `begin` to `end` in which the elements are a tensor's, whose first one lies at
/// `first`, or would lie.
struct Piece {
  Value from;
  Dims begin, end, first;
};

struct Pieces {
  std::vector<Piece> all;
  int32_t missing = -1;  ///< the dimension of the result that the tensors do not have
  c10::Scalar rest = 0;  ///< what lies in no piece

  /// The dimension of a tensor that is one of the result; -1: none.
  int32_t dim_of(int32_t dim) const { return dim == missing ? -1 : dim - (missing >= 0 && dim > missing); }
};

bool has_pieces(const c10::OperatorHandle& op);
/// What the result of such a node is put together of; nothing where these arguments are not for loops.
std::optional<Pieces> pieces_of(const Graph& graph, const Node& node);

/// That a loop has to be gone through in two parts, of which the first has so many steps.
struct Cut {
  size_t loop;
  int64_t steps;
};

/// The piece that all elements along a way lie in, null where they lie in none; nothing where they lie inside
/// and outside of one: then `cut` tells them apart, unless only loops that fold lead from the one to the
/// other.
std::optional<const Piece*> piece_along(const LoopNest& nest, const Way& way, const Pieces& pieces,
                                        std::optional<Cut>& cut);

}  // namespace tandem::loops
