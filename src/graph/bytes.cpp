#include "graph/bytes.h"

#include <ATen/EmptyTensor.h>
#include <tandem/error.h>

#include <cstring>

#include "graph/vocabulary.h"

namespace tandem {
namespace {

/// Calls `visit(index)` with the place in memory, counted in elements from the first, of every element in
/// logical order.
template <class Visit>
void for_each_element(at::IntArrayRef sizes, at::IntArrayRef strides, Visit&& visit) {
  for (int64_t size : sizes)
    if (size == 0) return;
  Dims counter(sizes.size(), 0);
  int64_t place = 0;
  while (true) {
    visit(place);
    size_t dim = sizes.size();
    while (dim > 0) {
      --dim;
      place += strides[dim];
      if (++counter[dim] < sizes[dim]) break;
      place -= counter[dim] * strides[dim];
      counter[dim] = 0;
      if (dim == 0) return;
    }
    if (sizes.empty()) return;
  }
}

}  // namespace

std::string element_bytes(const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided)
    throw Error("A constant of the graph is a " + c10::str(tensor.layout()) +
                " tensor; only strided tensors can be constants: make it dense or pass it as an input.");
  if (!tensor.device().is_cpu()) return element_bytes(tensor.cpu());
  const size_t width = tensor.element_size();
  std::string bytes(size_t(tensor.numel()) * width, '\0');
  const char* from = static_cast<const char*>(tensor.const_data_ptr());
  char* to = bytes.data();
  for_each_element(tensor.sizes(), tensor.strides(), [&](int64_t place) {
    std::memcpy(to, from + place * int64_t(width), width);
    to += width;
  });
  return bytes;
}

at::Tensor tensor_from_bytes(const TensorMeta& meta, std::string_view bytes) {
  if (std::string wrong = complaint(meta); !wrong.empty()) throw Error("A constant " + wrong + ".");
  if (meta.device.is_meta() || c10::isQIntType(meta.dtype))
    throw Error("A constant on the meta device or of a quantised type holds no bytes that could be kept.");
  const size_t width = c10::elementSize(meta.dtype);
  if (meta.numel() * int64_t(width) != int64_t(bytes.size()))
    throw Error("A constant of " + std::to_string(meta.numel()) + " elements of " + std::to_string(width) +
                " bytes comes with " + std::to_string(bytes.size()) + " bytes.");
  const int64_t reach = meta.storage_bytes();
  if (reach > int64_t(bytes.size()) * 1024 + 65536)
    throw Error("A constant of " + std::to_string(bytes.size()) + " bytes has strides that reach over " +
                std::to_string(reach) + "; make it contiguous.");
  at::Tensor tensor = at::detail::empty_cpu({reach / int64_t(width)}, meta.dtype);
  char* to = static_cast<char*>(tensor.mutable_data_ptr());
  if (reach > 0) std::memset(to, 0, size_t(reach));
  const char* from = bytes.data();
  for_each_element(meta.sizes, meta.strides, [&](int64_t place) {
    std::memcpy(to + (meta.offset + place) * int64_t(width), from, width);
    from += width;
  });
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(meta.sizes, meta.strides, meta.offset);
  if (!meta.device.is_cpu()) tensor = tensor.to(meta.device);
  if (meta.conj) tensor = tensor.conj();
  if (meta.neg) tensor = tensor._neg_view();
  return tensor;
}

std::string to_hex(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (unsigned char byte : bytes) (text += digits[byte >> 4]) += digits[byte & 15];
  return text;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace tandem
