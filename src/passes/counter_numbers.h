/// Counter-based random numbers in the place of those that libtorch's generator gives.
#pragma once

#include <tandem/graph.h>

namespace tandem {

struct Counted {
  Graph graph;
  std::vector<std::string> left;  ///< operators that still draw from the generator
};

/// The first `draws` nodes that draw from the live generator are the program's own. Wherever it can be
/// written so, each becomes a function of a seed, one for all of them that are of one device, and of its
/// number among the draws; the seed is drawn where the first of them was. A draw from a state that the
/// program put back is told by the draw that began in that state, and becomes the same function. Throws
/// RunEagerly where it draws other numbers.
Counted with_counter_numbers(Graph graph, size_t draws);

}  // namespace tandem
