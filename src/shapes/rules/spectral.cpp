#include "shapes/rules/helpers.h"

#include <ATen/Context.h>

#include <numeric>

namespace tandem::rules {
namespace {

/// Transformed dimensions from the widest stride to the narrowest; one-sided transforms keep their last one
/// last.
std::vector<int64_t> sorted(const at::Tensor& self, std::vector<int64_t> dims, bool keep_last) {
  auto strides = self.strides();
  std::sort(dims.begin(), dims.end() - (keep_last ? 1 : 0),
            [&](int64_t a, int64_t b) { return strides[a] > strides[b]; });
  return dims;
}

/// MKL's transforms work on one batch dimension: results are laid out with the batch first, by the input's
/// strides, then the transformed dimensions.
at::Tensor transformed(const at::Tensor& self, at::IntArrayRef sizes, const std::vector<int64_t>& dims,
                       at::ScalarType dtype) {
  auto count = size_t(self.dim());
  Dims order(count, 0);
  std::iota(order.begin(), order.end(), 0);
  auto batch_end = std::partition(order.begin(), order.end(), [&](int64_t d) {
    return std::find(dims.begin(), dims.end(), d) == dims.end();
  });
  auto strides_in = self.strides();
  std::sort(order.begin(), batch_end, [&](int64_t a, int64_t b) { return strides_in[a] > strides_in[b]; });
  std::copy(dims.begin(), dims.end(), batch_end);
  Dims strides(count, 0);
  int64_t stride = 1;
  for (size_t i = count; i-- > 0;) {
    strides[order[i]] = stride;
    stride *= sizes[order[i]];
  }
  return make_meta(sizes, strides, dtype);
}

bool by_mkl(const ShapeCall& call) { return call.device.is_cpu() && at::hasMKL(); }

void complex_to_complex(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  auto dims = call.integers(1);
  if (!by_mkl(call) || dims.empty()) return;
  call.give(transformed(self, self.sizes(), sorted(self, dims, false), self.scalar_type()));
}

void real_to_complex(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  auto dims = call.integers(1);
  if (!by_mkl(call) || dims.empty()) return;
  Dims sizes(self.sizes().begin(), self.sizes().end());
  if (call.boolean(3)) sizes[dims.back()] = sizes[dims.back()] / 2 + 1;
  call.give(transformed(self, sizes, sorted(self, dims, true), c10::toComplexType(self.scalar_type())));
}

void complex_to_real(ShapeCall& call) {
  at::Tensor self = call.tensor(0);
  auto dims = call.integers(1);
  if (!by_mkl(call) || dims.empty()) return;
  if (dims.size() > 1) {  // all but the last are transformed as complex ones first
    std::vector<int64_t> first(dims.begin(), dims.end() - 1);
    self = transformed(self, self.sizes(), sorted(self, first, false), self.scalar_type());
  }
  Dims sizes(self.sizes().begin(), self.sizes().end());
  sizes[dims.back()] = call.integer(3);
  call.give(transformed(self, sizes, {dims.back()}, c10::toRealValueType(self.scalar_type())));
}

constexpr Row spectral_rows[] = {
    {"aten::_fft_c2c", complex_to_complex},
    {"aten::_fft_r2c", real_to_complex},
    {"aten::_fft_c2r", complex_to_real},
};

}  // namespace

std::span<const Row> spectral() { return spectral_rows; }

}  // namespace tandem::rules
