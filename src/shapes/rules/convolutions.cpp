#include "shapes/rules/helpers.h"

#include <ATen/native/ConvUtils.h>

namespace tandem::rules {
namespace {

/// A tensor that claims a device and holds nothing: libtorch's own choice of a convolution kernel asks for
/// metadata alone.
at::Tensor hollow(const at::Tensor& meta, c10::Device device) {
  auto storage =
      c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), meta.storage().nbytes(),
                                            at::DataPtr(nullptr, device), nullptr, /*resizable=*/false);
  auto key = device.is_cpu() ? c10::DispatchKey::CPU : c10::DispatchKey::CUDA;
  auto impl = c10::make_intrusive<c10::TensorImpl>(c10::Storage(std::move(storage)), c10::DispatchKeySet(key),
                                                   meta.dtype());
  impl->set_sizes_and_strides(meta.sizes(), meta.strides());
  return at::Tensor(std::move(impl));
}

/// Kernels take one-dimensional convolutions as two-dimensional ones of height one.
at::Tensor with_height(const at::Tensor& tensor) { return tensor.dim() == 3 ? tensor.unsqueeze(2) : tensor; }
/// ... and make a one-dimensional input contiguous first, where it is not: strides of dimensions of one
/// element stay, and decide the format.
at::Tensor prepared(const at::Tensor& input) {
  return input.dim() == 3 && !input.is_contiguous() ? contiguous_like(input) : input;
}

/// In the format of the kernel, without the height that a one-dimensional convolution was given.
at::Tensor result(at::IntArrayRef sizes, at::ScalarType dtype, at::MemoryFormat format) {
  if (sizes.size() == 3) return formatted({sizes[0], sizes[1], 1, sizes[2]}, dtype, format).squeeze(2);
  return formatted(sizes, dtype, format);
}

struct Convolution {
  const at::Tensor &input, &weight;
  std::vector<int64_t> stride, padding, dilation;
  bool transposed;
  std::vector<int64_t> output_padding;
  int64_t groups;

  /// `first` is the place of the stride among the arguments.
  Convolution(const ShapeCall& call, size_t input_at, size_t first)
      : input(call.tensor(input_at)),
        weight(call.tensor(input_at + 1)),
        stride(call.integers(first)),
        padding(call.integers(first + 1)),
        dilation(call.integers(first + 2)),
        transposed(call.boolean(first + 3)),
        output_padding(call.integers(first + 4)),
        groups(call.integer(first + 5)) {
    auto spread = [&](std::vector<int64_t>& values) {
      if (values.size() == 1) values.resize(size_t(weight.dim() - 2), values[0]);
    };
    for (auto* values : {&stride, &padding, &dilation, &output_padding}) spread(*values);
  }

  std::vector<int64_t> output_sizes() const {
    if (transposed)
      return at::native::conv_input_size(input.sizes(), weight.sizes(), padding, output_padding, stride,
                                         dilation, groups);
    return at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
  }

  /// Throws what eager would for sizes that do not fit.
  at::native::ConvBackend kernel(c10::Device device, const at::Tensor& bias,
                                 at::OptionalIntArrayRef bias_sizes) const {
    auto symbolic = [](const std::vector<int64_t>& values) { return c10::fromIntArrayRefSlow(values); };
    std::optional<at::Tensor> real_bias;
    if (bias.defined()) real_bias = hollow(bias, device);
    at::OptionalSymIntArrayRef sizes;
    if (bias_sizes) sizes = c10::fromIntArrayRefSlow(*bias_sizes);
    return at::native::select_conv_backend(hollow(prepared(input), device), hollow(weight, device), real_bias,
                                           symbolic(stride), symbolic(padding), symbolic(dilation),
                                           transposed, symbolic(output_padding), groups, sizes);
  }

  at::MemoryFormat format(c10::Device device, at::native::ConvBackend kernel) const {
    return at::native::_determine_backend_memory_format(hollow(with_height(prepared(input)), device),
                                                        hollow(with_height(weight), device), kernel);
  }

  /// Those of the gradients of input and weight, each of which cuDNN computes from two of the three tensors;
  /// one with a single channel says nothing of its own.
  std::pair<at::MemoryFormat, at::MemoryFormat> formats_of_transposed(const at::Tensor& gradient,
                                                                      c10::Device device,
                                                                      at::MemoryFormat format) const {
    const at::Tensor x = with_height(prepared(input)).contiguous(format),
                     given = with_height(gradient).contiguous(x.suggest_memory_format());
    auto both = [&](const at::Tensor& other) {
      return at::native::cudnn_conv_suggest_memory_format(hollow(given, device), hollow(other, device));
    };
    return {both(with_height(weight)), both(x)};
  }
};

void convolution(ShapeCall& call) {
  Convolution c(call, 0, 3);
  auto kernel = c.kernel(call.device, call.optional_tensor(2), std::nullopt);
  if (c.input.dim() != c.weight.dim()) return;  // unbatched: left to libtorch
  call.give(result(c.output_sizes(), c.input.scalar_type(), c.format(call.device, kernel)));
}

void convolution_backward(ShapeCall& call) {
  Convolution c(call, 1, 4);
  if (c.input.scalar_type() != c.weight.scalar_type()) return;  // no forward gives such a call
  auto wanted = mask(call, 10);
  std::vector<int64_t> bias_sizes = optional_integers(call, 3);
  auto kernel = c.kernel(
      call.device, {}, bias_sizes.empty() ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(bias_sizes));
  // zeros, in layouts of many kinds
  if (kernel == at::native::ConvBackend::Empty || kernel == at::native::ConvBackend::MkldnnEmpty) return;
  at::MemoryFormat format = c.format(call.device, kernel);
  bool by_mkldnn =
      kernel == at::native::ConvBackend::Mkldnn || kernel == at::native::ConvBackend::MkldnnTranspose;
  auto [input_format, weight_format] = kernel == at::native::ConvBackend::CudnnTranspose
                                           ? c.formats_of_transposed(call.tensor(0), call.device, format)
                                           : std::pair(format, format);
  call.give(when(wanted[0], result(c.input.sizes(), c.input.scalar_type(), input_format)));
  if (wanted[1] || !by_mkldnn || !wanted[2])
    call.give(when(wanted[1], result(c.weight.sizes(), c.weight.scalar_type(), weight_format)));
  // made along with the bias's, and returned as it is
  else
    call.give(formatted(with_height(c.weight).sizes(), c.weight.scalar_type(), format));
  call.give(when(wanted[2], make_meta({call.tensor(0).size(1)}, call.tensor(0).scalar_type())));
}

void slow_convolution3d(ShapeCall& call) {
  const at::Tensor &input = call.tensor(0), &weight = call.tensor(1);
  if (input.dim() != 5 || weight.dim() != 5) return;
  auto stride = call.integers(4), padding = call.integers(5);
  call.give(make_meta(at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride),
                      input.scalar_type()));
}

constexpr Row convolutions_rows[] = {
    {"aten::slow_conv3d_forward", slow_convolution3d},
    {"aten::convolution", convolution},
    {"aten::convolution_backward", convolution_backward},
};

}  // namespace

std::span<const Row> convolutions() { return convolutions_rows; }

}  // namespace tandem::rules
