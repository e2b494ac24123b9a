/// What is known of operators that read less than all of an argument.
#pragma once

#include <tandem/graph.h>

namespace tandem {

/// Whether an argument is the number zero.
bool is_zero(const Operand& operand);

/// Whether a node reads nothing of an argument but dtype, sizes and strides.
bool reads_geometry_alone(const Graph& graph, const Node& reader, size_t argument);

/// Whether it reads of each element but whether that is above zero, and gives an element of its gradient or
/// zero.
bool reads_sign_alone(const Graph& graph, const Node& reader, size_t argument);
/// Whether threshold_backward copies the gradient bit for bit: on the CPU the kernel for half precision gives
/// another NaN than it is given.
bool is_choice_by_sign(const Graph& graph, Value value, Value gradient);

/// The smallest type that has room for the places which an argument holds; int64 where it holds something
/// else.
at::ScalarType type_of_places(const Graph& graph, const Node& reader, size_t argument);
/// Whether the places of a node are those that another one of the same input gives.
bool makes_places_for(const Node& maker, const Node& reader);

}  // namespace tandem
