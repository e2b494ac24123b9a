// Views that programs are full of: libtorch's way to them leads through two more operators.
#include "shapes/rules/helpers.h"

#include <ATen/core/Tensor.h>

namespace tandem::rules {
namespace {

at::Tensor exchanged(const at::Tensor& self, int64_t a, int64_t b) {
  Dims sizes(self.sizes().begin(), self.sizes().end()), strides(self.strides().begin(), self.strides().end());
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(self.storage()), self.key_set(), self.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, self.storage_offset());
  return view;
}

/// What is no matrix, or has no such dimensions, is left to libtorch.
void t(ShapeCall& call) {
  if (call.tensor(0).dim() == 2) call.give(exchanged(call.tensor(0), 0, 1));
}

void transpose(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  auto wrapped = [&](int64_t dim) { return dim < 0 ? dim + self.dim() : dim; };
  auto exists = [&](int64_t dim) { return dim >= 0 && dim < self.dim(); };
  const int64_t a = wrapped(call.integer(1)), b = wrapped(call.integer(2));
  if (exists(a) && exists(b) && a != b) call.give(exchanged(self, a, b));
}

constexpr Row views_rows[] = {
    {"aten::t", t},
    {"aten::transpose.int", transpose},
};

}  // namespace

std::span<const Row> views() { return views_rows; }

}  // namespace tandem::rules
