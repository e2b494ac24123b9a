/// Which parts of a traced history a backward uses up.
#pragma once

#include "base/bits.h"
#include "trace/tracer.h"

namespace tandem {

/// Where something lies in a history: the sources that lead to it and the leaves that it leads to, by their
/// places.
struct Between {
  Bits sources, inputs;
  friend auto operator<=>(const Between&, const Between&) = default;
};

/// Where the nodes lie that saved a tensor, between `sources` and `leaves`: they give it up behind the last
/// backward that comes by, and libtorch refuses the next one. Nodes that lie alike count once.
std::vector<Between> saving_nodes(const Tracer& tracer, const Tensors& sources, const Tensors& leaves);

}  // namespace tandem
