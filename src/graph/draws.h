/// Nodes that draw random numbers: from the live generator, or from a state that is a value of the graph.
#pragma once

#include <tandem/graph.h>

namespace tandem {

/// Whether a node draws from the live generator: it can neither be left out nor run twice nor change places
/// with another.
bool draws_live(const Node& node);

/// The generator that the program hands to a node, or none.
c10::IValue own_generator(const Node& node);

/// The device whose generator a random node draws from.
c10::Device drawn_on(const Graph& graph, const Node& node);

/// Whether a random node, given the state that the generator had before it, draws the same numbers again.
bool can_be_replayed(const Graph& graph, const Node& node);

/// A node that reads the state which a random node would draw from; the state is a new value of the graph.
Node state_before(Graph& graph, const Node& random);

/// What a state on this device looks like.
TensorMeta state_meta(Graph& graph, c10::Device device);

}  // namespace tandem
