#include "shapes/rules/helpers.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/TypeProperties.h>

namespace tandem::rules {

at::Tensor like(const at::Tensor& tensor, at::ScalarType dtype) {
  if (tensor.is_non_overlapping_and_dense()) return make_meta(tensor.sizes(), tensor.strides(), dtype);
  return make_meta(tensor.sizes(), at::infer_dense_strides(tensor.sizes(), tensor.strides()), dtype);
}

at::Tensor formatted(at::IntArrayRef sizes, at::ScalarType dtype, at::MemoryFormat format) {
  if (format == at::MemoryFormat::ChannelsLast)
    return make_meta(sizes, c10::get_channels_last_strides_2d(sizes), dtype);
  if (format == at::MemoryFormat::ChannelsLast3d)
    return make_meta(sizes, c10::get_channels_last_strides_3d(sizes), dtype);
  return make_meta(sizes, dtype);
}

at::Tensor suggested_like(const at::Tensor& tensor) {
  return formatted(tensor.sizes(), tensor.scalar_type(), tensor.suggest_memory_format());
}

at::Tensor column_major(at::IntArrayRef sizes, at::ScalarType dtype) {
  Dims swapped(sizes.begin(), sizes.end());
  std::swap(swapped.end()[-1], swapped.end()[-2]);
  at::Tensor rows = make_meta(swapped, dtype);
  Dims strides(rows.strides().begin(), rows.strides().end());
  std::swap(strides.end()[-1], strides.end()[-2]);
  return make_meta(sizes, strides, dtype);
}

namespace {

bool all_contiguous_alike(Inputs inputs) {
  at::IntArrayRef sizes = (*inputs.begin())->sizes();
  return std::all_of(inputs.begin(), inputs.end(),
                     [&](const at::Tensor* t) { return t->is_contiguous() && t->sizes() == sizes; });
}

at::Tensor iterate(at::ScalarType dtype, at::ArrayRef<const at::Tensor*> inputs) {
  at::Tensor output;
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false)
      .check_all_same_dtype(false)
      .check_all_same_device(false)
      .declare_static_dtype_and_device(dtype, c10::kMeta)
      .add_output(output);
  for (const at::Tensor* input : inputs) config.add_const_input(*input);
  return config.build().output();
}

}  // namespace

at::Tensor iterated(at::ScalarType dtype, Inputs inputs) {
  return all_contiguous_alike(inputs) ? make_meta((*inputs.begin())->sizes(), dtype) : iterate(dtype, inputs);
}

at::Tensor iterated(at::ScalarType dtype, at::ArrayRef<at::Tensor> inputs) {
  c10::SmallVector<const at::Tensor*, 4> places;
  for (const at::Tensor& input : inputs) places.push_back(&input);
  return iterate(dtype, places);
}

at::Tensor iterated_in(const ShapeCall& call, at::ScalarType common, at::ScalarType dtype, Inputs inputs) {
  if (!call.device.is_cpu() || all_contiguous_alike(inputs)) return iterated(dtype, inputs);
  c10::SmallVector<at::Tensor, 3> copies;
  for (const at::Tensor* input : inputs)
    copies.push_back(input->scalar_type() == common || input->is_non_overlapping_and_dense()
                         ? *input
                         : like(*input, common));
  return iterated(dtype, copies);
}

at::ScalarType promoted(Inputs inputs) {
  at::native::ResultTypeState state;
  for (const at::Tensor* input : inputs) state = at::native::update_result_type_state(*input, state);
  return at::native::result_type(state);
}

at::ScalarType promoted(const at::Tensor& tensor, const at::Scalar& number) {
  return at::native::result_type(
      at::native::update_result_type_state(number, at::native::update_result_type_state(tensor, {})));
}

at::ScalarType floating(at::ScalarType dtype) {
  return c10::isIntegralType(dtype, /*includeBool=*/true) ? c10::get_default_dtype_as_scalartype() : dtype;
}
at::ScalarType accumulated(at::ScalarType dtype) {
  return c10::isIntegralType(dtype, /*includeBool=*/true) ? at::kLong : dtype;
}
at::ScalarType statistics(at::ScalarType dtype) {
  return dtype == at::kHalf || dtype == at::kBFloat16 ? at::kFloat : dtype;
}

Dims reduced(at::IntArrayRef sizes, at::IntArrayRef dims, bool keepdim) {
  Dims result;
  auto chosen = at::dim_list_to_bitset(dims, sizes.size());
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!dims.empty() && !chosen[d])
      result.push_back(sizes[d]);
    else if (keepdim)
      result.push_back(1);
  }
  return result;
}

std::vector<int64_t> optional_integers(const ShapeCall& call, size_t argument) {
  if (call.arguments[argument].isNone()) return {};
  return call.integers(argument);
}

at::ScalarType dtype_or(const ShapeCall& call, size_t argument, at::ScalarType otherwise) {
  return call.arguments[argument].isNone() ? otherwise : call.arguments[argument].toScalarType();
}

std::vector<bool> mask(const ShapeCall& call, size_t argument) {
  std::vector<bool> bits;
  for (bool bit : call.arguments[argument].toBoolList()) bits.push_back(bit);
  return bits;
}

}  // namespace tandem::rules
