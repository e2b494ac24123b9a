#include "shapes/rules/helpers.h"

#include <ATen/native/Pool.h>

namespace tandem::rules {
namespace {

/// `sizes` with the last few replaced.
Dims with_last(at::IntArrayRef sizes, at::IntArrayRef last) {
  Dims result(sizes.begin(), sizes.end());
  std::copy(last.begin(), last.end(), result.end() - int64_t(last.size()));
  return result;
}

/// In three dimensions CUDA keeps channels last only where there is a batch.
at::MemoryFormat pooled3d_format(const ShapeCall& call, const at::Tensor& input) {
  return call.device.is_cpu() || input.dim() == 5 ? input.suggest_memory_format()
                                                  : at::MemoryFormat::Contiguous;
}

template <size_t Spatial>
void adaptive_average(ShapeCall& call) {
  const at::Tensor& input = call.tensor(0);
  std::vector<int64_t> sizes = call.integers(1);
  if (sizes.size() == 1) sizes.resize(Spatial, sizes[0]);
  auto format = Spatial == 2 ? input.suggest_memory_format() : at::MemoryFormat::Contiguous;
  call.give(formatted(with_last(input.sizes(), sizes), input.scalar_type(), format));
}

void adaptive_average_backward(ShapeCall& call) { call.give(suggested_like(call.tensor(1))); }
void adaptive_average3d_backward(ShapeCall& call) { call.give(contiguous_like(call.tensor(1))); }

void max_pool3d(ShapeCall& call) {
  const at::Tensor& input = call.tensor(0);
  auto entry = [](const std::vector<int64_t>& values, size_t i, int64_t otherwise) {
    return values.empty() ? otherwise : values[values.size() == 1 ? 0 : i];
  };
  auto kernel = call.integers(1), stride = call.integers(2), padding = call.integers(3),
       dilation = call.integers(4);
  Dims last;
  for (size_t i = 0; i < 3; ++i) {
    int64_t k = entry(kernel, i, 1);
    last.push_back(at::native::pooling_output_shape<int64_t>(input.size(int64_t(i) - 3), k,
                                                             entry(padding, i, 0), entry(stride, i, k),
                                                             entry(dilation, i, 1), call.boolean(5)));
  }
  Dims sizes = with_last(input.sizes(), last);
  auto format = pooled3d_format(call, input);
  call.give(formatted(sizes, input.scalar_type(), format));
  call.give(formatted(sizes, at::kLong, format));
}

void max_pool3d_backward(ShapeCall& call) {
  const at::Tensor& input = call.tensor(1);
  call.give(formatted(input.sizes(), input.scalar_type(), pooled3d_format(call, input)));
}

void max_unpool(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  auto format =
      call.device.is_cpu() && self.dim() == 4 ? self.suggest_memory_format() : at::MemoryFormat::Contiguous;
  call.give(formatted(with_last(self.sizes(), call.integers(2)), self.scalar_type(), format));
}

void max_unpool3d(ShapeCall& call) {
  call.give(make_meta(with_last(call.tensor(0).sizes(), call.integers(2)), call.tensor(0).scalar_type()));
}

void fractional_backward(ShapeCall& call) { call.give(contiguous_like(call.tensor(1))); }

constexpr Row pooling_rows[] = {
    {"aten::_adaptive_avg_pool2d", adaptive_average<2>},
    {"aten::_adaptive_avg_pool3d", adaptive_average<3>},
    {"aten::_adaptive_avg_pool2d_backward", adaptive_average_backward},
    {"aten::_adaptive_avg_pool3d_backward", adaptive_average3d_backward},
    {"aten::max_pool3d_with_indices", max_pool3d},
    {"aten::max_pool3d_with_indices_backward", max_pool3d_backward},
    {"aten::max_unpool2d", max_unpool},
    {"aten::max_unpool3d", max_unpool3d},
    {"aten::fractional_max_pool3d_backward", fractional_backward},
};

}  // namespace

std::span<const Row> pooling() { return pooling_rows; }

}  // namespace tandem::rules
