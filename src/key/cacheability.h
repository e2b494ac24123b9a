/// What keeps compiled code out of the cache.
#pragma once

#include <tandem/graph.h>

namespace tandem {

/// Constants of a program are hashed at every trace and kept in every entry. More than this is data, which
/// belongs into a tensor that the function is given or captures; it is also what the tracer lends to tensors
/// that a program fills by itself.
constexpr int64_t most_constant_bytes = 1 << 20;

/// Of all its constants together.
int64_t constant_bytes(const Graph& graph);

/// Why nobody could be given this graph's code later, as the end of a sentence; empty when everything in it
/// can be told by value, name or version. To be asked of the trace, and of every graph made from it:
/// backwards, passes and decompositions bring operators of their own.
std::string find_obstacle(const Graph& graph);

}  // namespace tandem
