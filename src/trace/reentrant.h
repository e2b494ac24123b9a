/// Checkpoints of a host language whose backward calls the function again and then `backward()`, in the
/// middle of another backward.
#pragma once

#include <optional>

#include "base/autograd.h"
#include "trace/tracer.h"

namespace tandem {

/// Where the history of a traced program has such a checkpoint, a node of ours takes its place. It leads to
/// the leaves that the function has read as well, to which eager's backward adds on its own. Throws
/// RunEagerly where that is not the same: a leaf is read elsewhere too.
void take_over_reentrant(Tracer& tracer, const Tensors& ends);

/// How many of the first edges of such a node are those of the function's arguments; the others lead to
/// leaves. Nothing for other nodes.
std::optional<size_t> arguments_of_reentrant(const torch::autograd::Node& node);

}  // namespace tandem
