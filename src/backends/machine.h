/// The machine code of a graph with groups, and the bytes that both are kept as.
#pragma once

#include "backends/fused_graph.h"
#include "graph/wire.h"
#include "native/code.h"

namespace tandem {

/// Code of each launch of all groups, one behind the other; none where loops are interpreted.
using Machine = std::vector<native::CodePointer>;

/// Of each launch of all groups, one behind the other.
std::vector<loops::Kernel> kernels_of(const FusedGraph& fused);

/// The members of each group; then each code once, and which one every launch has.
std::vector<uint8_t> bytes_of(const FusedGraph& fused, const Machine& machine);

/// The first part of these bytes; throws Error where they make no sense.
std::vector<loops::Members> read_members(ByteReader& reader);
/// The second: code of these kernels; nothing where it is of others, or not for this processor.
std::optional<Machine> read_machine(ByteReader& reader, const std::vector<loops::Kernel>& kernels);

}  // namespace tandem
