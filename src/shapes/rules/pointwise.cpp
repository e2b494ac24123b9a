#include "shapes/rules/helpers.h"

#include <ATen/ExpandUtils.h>

namespace tandem::rules {
namespace {

at::ScalarType real_of(at::ScalarType dtype) {
  return c10::isComplexType(dtype) ? c10::toRealValueType(dtype) : dtype;
}

void same(ShapeCall& call) { call.give(iterated(call.tensor(0).scalar_type(), {&call.tensor(0)})); }
/// Their kernels take no truth values, and say so.
void activation(ShapeCall& call) {
  if (call.tensor(0).scalar_type() != at::kBool) same(call);
}
void filled(ShapeCall& call) {
  const at::Tensor &self = call.tensor(0), &mask = call.tensor(1);
  if (mask.scalar_type() == at::kBool)
    call.give(make_meta(at::infer_size(self.sizes(), mask.sizes()), self.scalar_type()));
}
void magnitude(ShapeCall& call) {
  call.give(iterated(real_of(call.tensor(0).scalar_type()), {&call.tensor(0)}));
}
void angle(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  at::ScalarType dtype = floating(real_of(self.scalar_type()));
  call.give(self.is_complex() ? make_meta(self.sizes(), dtype) : iterated(dtype, {&self}));
}
void floats(ShapeCall& call) {
  call.give(iterated(floating(call.tensor(0).scalar_type()), {&call.tensor(0)}));
}
void truth(ShapeCall& call) { call.give(iterated(at::kBool, {&call.tensor(0)})); }
void sampled(ShapeCall& call) { call.give(contiguous_like(call.tensor(0))); }
void sampled_pair(ShapeCall& call) {
  if (call.tensor(0).sizes() == call.tensor(1).sizes()) sampled(call);
}
void fraction_and_exponent(ShapeCall& call) {
  same(call);
  call.give(iterated(at::kInt, {&call.tensor(0)}));
}

at::ScalarType common_of_pair(const ShapeCall& call) { return promoted({&call.tensor(0), &call.tensor(1)}); }
void pair(ShapeCall& call) {
  at::ScalarType common = common_of_pair(call);
  call.give(iterated_in(call, common, common, {&call.tensor(0), &call.tensor(1)}));
}
void reversed_pair(ShapeCall& call) {
  at::ScalarType common = common_of_pair(call);
  call.give(iterated_in(call, common, common, {&call.tensor(1), &call.tensor(0)}));
}
void truth_of_pair(ShapeCall& call) {
  call.give(iterated_in(call, common_of_pair(call), at::kBool, {&call.tensor(0), &call.tensor(1)}));
}
void with_number(ShapeCall& call) {
  call.give(iterated(promoted(call.tensor(0), call.arguments[1].toScalar()), {&call.tensor(0)}));
}
void number_with(ShapeCall& call) {
  call.give(iterated(promoted(call.tensor(1), call.arguments[0].toScalar()), {&call.tensor(1)}));
}
void complex_of_pair(ShapeCall& call) {
  call.give(iterated(c10::toComplexType(call.tensor(0).scalar_type()), {&call.tensor(0), &call.tensor(1)}));
}
/// Begins with an empty tensor like the first, which is laid out anew only where the second broadcasts it.
void slope(ShapeCall& call) {
  const at::Tensor &self = call.tensor(0), &weight = call.tensor(1);
  call.give(self.sizes() == at::infer_size(self.sizes(), weight.sizes())
                ? like(self)
                : iterated(self.scalar_type(), {&self, &weight}));
}
void choice(ShapeCall& call) {
  call.give(iterated(promoted({&call.tensor(1), &call.tensor(2)}),
                     {&call.tensor(0), &call.tensor(1), &call.tensor(2)}));
}

void prelu_backward(ShapeCall& call) {
  for (int i = 0; i < 2; ++i)
    call.give(iterated(call.tensor(1).scalar_type(), {&call.tensor(1), &call.tensor(2), &call.tensor(0)}));
}

void log_sigmoid(ShapeCall& call) {
  if (call.device.is_cpu()) {
    call.give(contiguous_like(call.tensor(0)));
    call.give(contiguous_like(call.tensor(0)));
  } else {
    same(call);
    call.give(make_meta({0}, call.tensor(0).scalar_type()));
  }
}

void log_sigmoid_backward(ShapeCall& call) {
  if (call.tensor(0).sizes() == call.tensor(1).sizes()) call.give(like(call.tensor(0)));
}

void dropout(ShapeCall& call) {
  const at::Tensor& input = call.tensor(0);
  if (input.numel() == 0) {
    if (!call.device.is_cpu()) return;  // each device has a way of its own with nothing
    call.give(input);
    return call.give(like(input));
  }
  call.give(like(input));
  call.give(like(input, at::kBool));
}
void dropout_backward(ShapeCall& call) {
  const at::Tensor &gradient = call.tensor(0), &mask = call.tensor(1);
  if (!call.device.is_cpu()) {
    if (gradient.sizes() == at::infer_size(gradient.sizes(), mask.sizes()))
      call.give(suggested_like(gradient));
    return;
  }
  at::ScalarType dtype = floating(gradient.scalar_type());
  call.give(iterated_in(call, common_of_pair(call), dtype, {&gradient, &mask}));
}

void glu_backward(ShapeCall& call) { call.give(contiguous_like(call.tensor(1))); }

// Meta kernels do these well. What most calls are (contiguous, floating, of one dtype and size) is answered
// here because it takes half the time.

bool is_plain(const at::Tensor& t) { return t.is_floating_point() && t.is_contiguous(); }
bool is_real_number(const at::Tensor& t) {
  return t.unsafeGetTensorImpl()->is_wrapped_number() && !t.is_complex();
}
bool is_complex_number(const c10::IValue& v) { return v.isComplexDouble(); }

void plain(ShapeCall& call) {
  if (is_plain(call.tensor(0))) call.give(contiguous_like(call.tensor(0)));
}

void plain_pair(ShapeCall& call) {
  const at::Tensor &a = call.tensor(0), &b = call.tensor(1);
  if (!is_plain(a) || (call.arguments.size() > 2 && is_complex_number(call.arguments[2]))) return;
  bool alike = is_plain(b) && a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
               !b.unsafeGetTensorImpl()->is_wrapped_number();
  if (!alike && (!is_real_number(b) || a.dim() == 0)) return;
  // Beside a number TensorIterator looks at all strides, those of dimensions of one element too.
  at::Tensor made = contiguous_like(a);
  if (alike || made.strides() == a.strides()) call.give(std::move(made));
}

constexpr Row pointwise_rows[] = {
    {"aten::neg", plain},
    {"aten::exp", plain},
    {"aten::tanh", plain},
    {"aten::sigmoid", plain},
    {"aten::gelu", plain},
    {"aten::silu", plain},
    {"aten::add.Tensor", plain_pair},
    {"aten::sub.Tensor", plain_pair},
    {"aten::mul.Tensor", plain_pair},
    {"aten::div.Tensor", plain_pair},
    {"aten::tanh_backward", plain_pair},
    {"aten::sigmoid_backward", plain_pair},
    {"aten::gelu_backward", plain_pair},
    {"aten::silu_backward", plain_pair},
    {"aten::threshold_backward", plain_pair},
    {"aten::relu", activation},
    {"aten::relu6", activation},
    {"aten::hardtanh", activation},
    {"aten::hardswish", activation},
    {"aten::nan_to_num", same},
    {"aten::masked_fill.Scalar", filled},
    {"aten::masked_fill.Tensor", filled},
    {"aten::_conj_physical", same},
    {"aten::abs", magnitude},
    {"aten::angle", angle},
    {"aten::logit", floats},
    {"aten::isnan", truth},
    {"aten::isinf", truth},
    {"aten::isfinite", truth},
    {"aten::logical_not", truth},
    {"aten::_standard_gamma", sampled},
    {"aten::poisson", sampled},
    {"aten::_sample_dirichlet", sampled},
    {"aten::_dirichlet_grad", sampled},
    {"aten::rrelu_with_noise", sampled},
    {"aten::binomial", sampled_pair},
    {"aten::frexp.Tensor", fraction_and_exponent},
    {"aten::floor_divide", pair},
    {"aten::rsub.Tensor", reversed_pair},
    {"aten::_add_relu.Tensor", pair},
    {"aten::__lshift__.Tensor", pair},
    {"aten::__rshift__.Tensor", pair},
    {"aten::_standard_gamma_grad", sampled_pair},
    {"aten::floor_divide.Scalar", with_number},
    {"aten::_add_relu.Scalar", with_number},
    {"aten::__lshift__.Scalar", with_number},
    {"aten::__rshift__.Scalar", with_number},
    {"aten::remainder.Scalar_Tensor", number_with},
    {"aten::logical_and", truth_of_pair},
    {"aten::logical_or", truth_of_pair},
    {"aten::logical_xor", truth_of_pair},
    {"aten::complex", complex_of_pair},
    {"aten::polar", complex_of_pair},
    {"aten::where.self", choice},
    {"aten::hardswish_backward", pair},
    {"aten::hardtanh_backward", pair},
    {"aten::_prelu_kernel", slope},
    {"aten::_prelu_kernel_backward", prelu_backward},
    {"aten::glu_backward", glu_backward},
    {"aten::log_sigmoid_forward", log_sigmoid},
    {"aten::log_sigmoid_backward", log_sigmoid_backward},
    {"aten::native_dropout", dropout},
    {"aten::native_dropout_backward", dropout_backward},
};

}  // namespace

std::span<const Row> pointwise() { return pointwise_rows; }

}  // namespace tandem::rules
