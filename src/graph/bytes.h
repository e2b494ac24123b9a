/// The contents of tensors that are constants of a graph, as bytes and as text.
#pragma once

#include <tandem/graph.h>

namespace tandem {

/// The elements in logical order, whatever the strides; from the CPU without the dispatcher, so that it may
/// be asked while tracing.
std::string element_bytes(const at::Tensor& tensor);
/// A tensor of exactly this geometry; throws Error when the number of bytes is not the meta's, or the strides
/// reach much farther than the bytes.
at::Tensor tensor_from_bytes(const TensorMeta& meta, std::string_view bytes);

std::string to_hex(std::string_view bytes);
/// The value of a lower-case hexadecimal digit, or -1.
int hex_digit(char c);

}  // namespace tandem
