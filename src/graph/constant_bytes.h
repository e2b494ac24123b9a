/// The parts of a graph that are no graph: metas, tensors and other constants, as bytes.
#pragma once

#include <tandem/graph.h>

#include "graph/wire.h"

namespace tandem {

void write_meta(ByteWriter& writer, const TensorMeta& meta);
/// Throws Error unless memory can hold such a tensor.
TensorMeta read_meta(ByteReader& reader);

/// The elements, with a geometry that begins at their memory's first; throws Error where these bytes would
/// not be all of that memory.
void write_tensor(ByteWriter& writer, const at::Tensor& tensor);
at::Tensor read_tensor(ByteReader& reader);

/// What an operator is given besides tensors; throws Error on what has no bytes, such as a generator.
void write_constant(ByteWriter& writer, const c10::IValue& constant);
c10::IValue read_constant(ByteReader& reader);

}  // namespace tandem
