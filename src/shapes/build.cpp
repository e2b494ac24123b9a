#include <tandem/build.h>

#include "graph/vocabulary.h"

namespace tandem {

Value Builder::input(at::IntArrayRef sizes, at::ScalarType dtype, c10::Device device,
                     at::IntArrayRef strides) {
  TensorMeta meta{.dtype = dtype, .device = device};
  meta.sizes.assign(sizes.begin(), sizes.end());
  meta.strides = strides.size() == sizes.size() ? Dims(strides.begin(), strides.end()) : dense_strides(sizes);
  meta.storage = graph_.fresh_storage();
  return graph_.add_input(std::move(meta));
}

Value Builder::constant(const at::Tensor& data) {
  TensorMeta meta{.dtype = data.scalar_type(), .device = data.device()};
  meta.sizes.assign(data.sizes().begin(), data.sizes().end());
  meta.strides.assign(data.strides().begin(), data.strides().end());
  meta.storage = graph_.fresh_storage();
  return graph_.add_constant(std::move(meta), data);
}

}  // namespace tandem
