#include "shapes/rules/helpers.h"

namespace tandem::rules {
namespace {

/// Statistics take the dtype of the weights where that differs from the input's (half-precision inputs), and
/// on CUDA are never in half precision.
at::ScalarType statistics_dtype(const ShapeCall& call, const at::Tensor& input, const at::Tensor& weight,
                                bool widened_on_cuda) {
  if (!call.device.is_cpu() && widened_on_cuda) return statistics(input.scalar_type());
  bool mixed = statistics(input.scalar_type()) != input.scalar_type() && weight.defined() &&
               weight.scalar_type() == at::kFloat;
  return mixed ? at::kFloat : input.scalar_type();
}

/// The first tensor that is there among arguments `first` to `last`.
at::Tensor first_defined(const ShapeCall& call, size_t first, size_t last) {
  for (size_t i = first; i <= last; ++i)
    if (at::Tensor tensor = call.optional_tensor(i); tensor.defined()) return tensor;
  return {};
}

void layer_norm(ShapeCall& call) {
  const at::Tensor& input = call.tensor(0);
  Dims sizes(input.sizes().begin(), input.sizes().end());
  std::fill(sizes.end() - int64_t(call.integers(1).size()), sizes.end(), 1);
  at::ScalarType dtype = statistics_dtype(call, input, call.optional_tensor(2), true);
  call.give(contiguous_like(input));
  call.give(make_meta(sizes, dtype));
  call.give(make_meta(sizes, dtype));
}

void layer_norm_backward(ShapeCall& call) {
  auto wanted = mask(call, 7);
  at::Tensor weight = call.optional_tensor(5), bias = call.optional_tensor(6);
  at::ScalarType dtype = weight.defined() ? weight.scalar_type() : call.tensor(1).scalar_type();
  call.give(when(wanted[0], contiguous_like(call.tensor(1))));
  call.give(when(wanted[1], make_meta(call.integers(2), dtype)));
  call.give(when(wanted[2], make_meta(call.integers(2), bias.defined() ? bias.scalar_type() : dtype)));
}

void give_batch_norm(ShapeCall& call, bool training, size_t last_parameter = 4) {
  const at::Tensor& input = call.tensor(0);
  bool cpu = call.device.is_cpu();
  // CUDA returns them of this size whether it trains or not
  int64_t kept = training || !cpu ? input.size(1) : 0;
  at::ScalarType dtype = statistics_dtype(call, input, first_defined(call, 1, last_parameter), true);
  call.give(cpu ? suggested_like(input) : like(input));
  call.give(make_meta({kept}, dtype));
  call.give(make_meta({kept}, dtype));
}

void batch_norm(ShapeCall& call) { give_batch_norm(call, call.boolean(5)); }
void batch_norm_without_history(ShapeCall& call) { give_batch_norm(call, call.boolean(3), 2); }
void batch_norm_not_training(ShapeCall& call) { give_batch_norm(call, false); }
void batch_norm_functional(ShapeCall& call) {
  give_batch_norm(call, call.boolean(5));
  call.give(like(call.tensor(3)));
  call.give(like(call.tensor(4)));
}

/// With a reserve, which is empty on the CPU; on CUDA its size is cuDNN's secret.
void batch_norm_with_update(ShapeCall& call) {
  if (!call.device.is_cpu()) return;
  give_batch_norm(call, true);
  call.give(make_meta({0}, at::kByte));
}
void batch_norm_no_update(ShapeCall& call) {
  if (!call.device.is_cpu()) return;
  give_batch_norm(call, false);
  call.give(make_meta({0}, at::kByte));
}
void batch_norm_with_update_functional(ShapeCall& call) {
  batch_norm_with_update(call);
  if (call.results.empty()) return;
  call.give(like(call.tensor(3)));
  call.give(like(call.tensor(4)));
}

void cudnn_batch_norm(ShapeCall& call) {
  if (call.boolean(5)) return;
  call.give(suggested_like(call.tensor(0)));
  for (int i = 0; i < 2; ++i) call.give(make_meta({0}, call.tensor(1).scalar_type()));
  call.give(make_meta({0}, at::kByte));
}

void cudnn_batch_norm_backward(ShapeCall& call) {
  call.give(suggested_like(call.tensor(0)));
  for (int i = 0; i < 2; ++i) call.give(contiguous_like(call.tensor(2)));
}

/// On CUDA the kernels differ in what they make of a missing weight, of results that are not wanted, of
/// layouts and of mixed dtypes: only the common call is answered.
bool is_common_backward(const ShapeCall& call, const std::vector<bool>& wanted) {
  const at::Tensor &gradient = call.tensor(0), &input = call.tensor(1);
  return call.optional_tensor(2).defined() && wanted == std::vector<bool>(3, true) &&
         gradient.scalar_type() == input.scalar_type() && gradient.is_contiguous() && input.is_contiguous();
}

void give_batch_norm_backward(ShapeCall& call, const std::vector<bool>& wanted) {
  if (!call.device.is_cpu() && !is_common_backward(call, wanted)) return;
  const at::Tensor& input = call.tensor(1);
  at::Tensor weight = call.optional_tensor(2);
  at::ScalarType dtype =
      weight.defined() ? weight.scalar_type() : statistics_dtype(call, input, weight, true);
  call.give(when(wanted[0], suggested_like(input)));
  call.give(when(wanted[1], make_meta({input.size(1)}, dtype)));
  call.give(when(wanted[2], make_meta({input.size(1)}, dtype)));
}

template <int Mask>
void batch_norm_backward(ShapeCall& call) {
  give_batch_norm_backward(call, mask(call, Mask));
}

void batch_norm_statistics(ShapeCall& call) {
  at::ScalarType dtype = statistics_dtype(call, call.tensor(0), first_defined(call, 1, 2), true);
  for (int i = 0; i < 2; ++i) call.give(make_meta({call.tensor(0).size(1)}, dtype));
}

at::Tensor group_norm_result(const ShapeCall& call, const at::Tensor& input) {
  return call.device.is_cpu() ? suggested_like(input) : contiguous_like(input);
}

void group_norm(ShapeCall& call) {
  const at::Tensor& input = call.tensor(0);
  call.give(group_norm_result(call, input));
  at::ScalarType dtype = statistics_dtype(call, input, call.optional_tensor(1), false);
  for (int i = 0; i < 2; ++i) call.give(make_meta({call.integer(3), call.integer(6)}, dtype));
}

void group_norm_backward(ShapeCall& call) {
  auto wanted = mask(call, 9);
  const at::Tensor& input = call.tensor(1);
  at::Tensor weight = call.optional_tensor(4);
  at::ScalarType dtype = weight.defined() ? weight.scalar_type() : input.scalar_type();
  call.give(when(wanted[0], group_norm_result(call, input)));
  call.give(when(wanted[1], make_meta({call.integer(6)}, dtype)));
  call.give(when(wanted[2], make_meta({call.integer(6)}, dtype)));
}

void weight_norm(ShapeCall& call) {
  call.give(contiguous_like(call.tensor(0)));
  const at::Tensor& magnitude = call.tensor(1);
  call.give(make_meta(magnitude.sizes(), magnitude.strides(), statistics(magnitude.scalar_type())));
}

void weight_norm_backward(ShapeCall& call) {
  call.give(contiguous_like(call.tensor(1)));
  call.give(contiguous_like(call.tensor(2)));
}

constexpr Row normalisation_rows[] = {
    {"aten::native_layer_norm", layer_norm},
    {"aten::native_layer_norm_backward", layer_norm_backward},
    {"aten::native_batch_norm", batch_norm},
    {"aten::_native_batch_norm_legit", batch_norm},
    {"aten::_native_batch_norm_legit.no_stats", batch_norm_without_history},
    {"aten::_native_batch_norm_legit_no_training", batch_norm_not_training},
    {"aten::_native_batch_norm_legit_functional", batch_norm_functional},
    {"aten::native_batch_norm_backward", batch_norm_backward<9>},
    {"aten::_batch_norm_with_update", batch_norm_with_update},
    {"aten::_batch_norm_with_update_functional", batch_norm_with_update_functional},
    {"aten::_batch_norm_no_update", batch_norm_no_update},
    {"aten::batch_norm_backward", batch_norm_backward<9>},
    {"aten::batch_norm_update_stats", batch_norm_statistics},
    {"aten::cudnn_batch_norm", cudnn_batch_norm},
    {"aten::cudnn_batch_norm_backward", cudnn_batch_norm_backward},
    {"aten::native_group_norm", group_norm},
    {"aten::native_group_norm_backward", group_norm_backward},
    {"aten::_weight_norm_interface", weight_norm},
    {"aten::_weight_norm_interface_backward", weight_norm_backward},
};

}  // namespace

std::span<const Row> normalisation() { return normalisation_rows; }

}  // namespace tandem::rules
