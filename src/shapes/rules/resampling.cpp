#include "shapes/rules/helpers.h"

#include <c10/util/irange.h>

namespace tandem::rules {
namespace {

/// CPU kernels keep channels-last, CUDA's do not.
at::MemoryFormat padding_format(const ShapeCall& call, const at::Tensor& input) {
  return call.device.is_cpu() ? input.suggest_memory_format() : at::MemoryFormat::Contiguous;
}

template <size_t Spatial>
void padded(ShapeCall& call) {
  const at::Tensor& input = call.tensor(0);
  std::vector<int64_t> padding = call.integers(1);
  // libtorch has the error for it
  if (padding.size() != 2 * Spatial || input.dim() <= int64_t(Spatial)) return;
  Dims sizes(input.sizes().begin(), input.sizes().end());
  for (size_t i = 0; i < Spatial; ++i) sizes[sizes.size() - 1 - i] += padding[2 * i] + padding[2 * i + 1];
  call.give(formatted(sizes, input.scalar_type(), padding_format(call, input)));
}

void padded_backward(ShapeCall& call) {
  call.give(
      formatted(call.tensor(1).sizes(), call.tensor(1).scalar_type(), padding_format(call, call.tensor(1))));
}

template <int64_t Spatial>
void grid_sampler(ShapeCall& call) {
  const at::Tensor &input = call.tensor(0), &grid = call.tensor(1);
  Dims sizes{input.size(0), input.size(1)};
  for (int64_t i = 0; i < Spatial; ++i) sizes.push_back(grid.size(i + 1));
  call.give(make_meta(sizes, input.scalar_type()));
}

void grid_sampler_backward(ShapeCall& call) {
  auto wanted = mask(call, 6);
  call.give(when(wanted[0], contiguous_like(call.tensor(1))));
  call.give(contiguous_like(call.tensor(2)));
}

int64_t windows(int64_t size, int64_t kernel, int64_t dilation, int64_t padding, int64_t stride) {
  return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

void columns(ShapeCall& call) {
  const at::Tensor& input = call.tensor(0);
  auto kernel = call.integers(1), dilation = call.integers(2), padding = call.integers(3),
       stride = call.integers(4);
  int64_t places = 1;
  for (auto i : c10::irange(2))
    places *= windows(input.size(i - 2), kernel[i], dilation[i], padding[i], stride[i]);
  Dims sizes{input.size(-3) * kernel[0] * kernel[1], places};
  if (input.dim() == 4) sizes.insert(sizes.begin(), input.size(0));
  call.give(make_meta(sizes, input.scalar_type()));
}

void image(ShapeCall& call) {
  const at::Tensor& input = call.tensor(0);
  auto output = call.integers(1), kernel = call.integers(2);
  Dims sizes{input.size(-2) / (kernel[0] * kernel[1]), output[0], output[1]};
  if (input.dim() == 3) sizes.insert(sizes.begin(), input.size(0));
  call.give(make_meta(sizes, input.scalar_type()));
}

/// The CPU kernels of these keep channels-last; elsewhere they are made of views, which Meta kernels do well.
void shuffled_pixels(ShapeCall& call, int64_t channels_by, int64_t edge_times, int64_t edge_by) {
  const at::Tensor& input = call.tensor(0);
  // the kernel gives nothing back as it came
  if (call.device.is_cpu() && input.numel() == 0 && edge_times == 1) return call.give(like(input));
  if (!call.device.is_cpu() || input.suggest_memory_format() == at::MemoryFormat::Contiguous) return;
  Dims sizes(input.sizes().begin(), input.sizes().end());
  sizes.end()[-3] = edge_times > 1 ? sizes.end()[-3] / channels_by : sizes.end()[-3] * channels_by;
  for (int d : {-2, -1}) sizes.end()[d] = sizes.end()[d] * edge_times / edge_by;
  call.give(formatted(sizes, input.scalar_type(), input.suggest_memory_format()));
}
void pixel_shuffle(ShapeCall& call) {
  shuffled_pixels(call, call.integer(1) * call.integer(1), call.integer(1), 1);
}
void pixel_unshuffle(ShapeCall& call) {
  shuffled_pixels(call, call.integer(1) * call.integer(1), 1, call.integer(1));
}
void channel_shuffle(ShapeCall& call) {
  if (call.tensor(0).numel() == 0) return call.give(alias_meta(call.tensor(0)));
  call.give(call.device.is_cpu() ? suggested_like(call.tensor(0)) : contiguous_like(call.tensor(0)));
}

constexpr Row resampling_rows[] = {
    {"aten::reflection_pad2d", padded<2>},
    {"aten::replication_pad2d", padded<2>},
    {"aten::reflection_pad3d", padded<3>},
    {"aten::replication_pad3d", padded<3>},
    {"aten::reflection_pad2d_backward", padded_backward},
    {"aten::replication_pad2d_backward", padded_backward},
    {"aten::reflection_pad3d_backward", padded_backward},
    {"aten::replication_pad3d_backward", padded_backward},
    {"aten::grid_sampler_2d", grid_sampler<2>},
    {"aten::grid_sampler_3d", grid_sampler<3>},
    {"aten::grid_sampler_2d_backward", grid_sampler_backward},
    {"aten::grid_sampler_3d_backward", grid_sampler_backward},
    {"aten::im2col", columns},
    {"aten::col2im", image},
    {"aten::pixel_shuffle", pixel_shuffle},
    {"aten::pixel_unshuffle", pixel_unshuffle},
    {"aten::channel_shuffle", channel_shuffle},
};

}  // namespace

std::span<const Row> resampling() { return resampling_rows; }

}  // namespace tandem::rules
