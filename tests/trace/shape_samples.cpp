#include "trace/shape_samples.h"

namespace tandem::samples {

at::Tensor floats(at::IntArrayRef sizes) { return at::rand(sizes).mul_(0.8).add_(0.1); }
at::Tensor indices(at::IntArrayRef sizes, int64_t bound) { return at::randint(bound, sizes, at::kLong); }
at::Tensor bools(at::IntArrayRef sizes) { return at::rand(sizes).gt(0.5); }
at::Tensor complexes(at::IntArrayRef sizes) { return at::randn(sizes, at::kComplexFloat); }
at::Tensor matrices(at::IntArrayRef sizes) {
  at::Tensor m = floats(sizes);
  return at::matmul(m, m.mT()) + at::eye(sizes.back()) * double(sizes.back());
}
c10::IValue ints(std::vector<int64_t> values) { return c10::IValue(std::move(values)); }
c10::IValue masks(std::vector<bool> values) {
  c10::List<bool> list;
  for (bool v : values) list.push_back(v);
  return list;
}
c10::IValue tensors(std::vector<at::Tensor> values) { return c10::IValue(c10::List<at::Tensor>(values)); }
c10::IValue optional_tensors(std::vector<std::optional<at::Tensor>> values) {
  c10::List<std::optional<at::Tensor>> list;
  for (auto& v : values) list.push_back(v);
  return list;
}

std::vector<Sample> pointwise() {
  std::vector<Sample> samples;
  // One tensor in, one out.
  for (const char* op : {"abs",
                         "relu",
                         "hardtanh",
                         "hardswish",
                         "logit",
                         "angle",
                         "isnan",
                         "isinf",
                         "logical_not",
                         "nan_to_num",
                         "celu",
                         "deg2rad",
                         "rad2deg",
                         "frexp.Tensor",
                         "_standard_gamma",
                         "poisson",
                         "bernoulli",
                         "log_sigmoid_forward",
                         "_conj_physical",
                         "neg",
                         "exp",
                         "tanh",
                         "sigmoid",
                         "gelu",
                         "silu",
                         "elu",
                         "frac",
                         "sign",
                         "lgamma",
                         "digamma",
                         "mish",
                         "softplus",
                         "clamp",
                         "logcumsumexp",
                         "selu",
                         "isposinf",
                         "isfinite",
                         "relu6",
                         "hardsigmoid",
                         "hardshrink",
                         "softshrink",
                         "erfinv",
                         "i0",
                         "square",
                         "positive",
                         "signbit"})
    for (const at::Tensor& x : {floats({3, 4}), floats({2, 3, 4, 5}), floats({0, 3}), floats({}), floats({5}),
                                indices({3, 4}), bools({3, 4}), complexes({3, 4})}) {
      std::vector<c10::IValue> arguments{x};
      if (std::string(op) == "clamp") arguments.insert(arguments.end(), {0.2, 0.5});
      if (std::string(op) == "logcumsumexp") arguments.emplace_back(-1);
      samples.push_back({std::string("aten::") + op, arguments});
    }
  // Two tensors that broadcast.
  for (const char* op : {"floor_divide",
                         "rsub.Tensor",
                         "logical_and",
                         "logical_or",
                         "logical_xor",
                         "fill.Tensor",
                         "__lshift__.Tensor",
                         "__rshift__.Tensor",
                         "add.Tensor",
                         "sub.Tensor",
                         "mul.Tensor",
                         "div.Tensor",
                         "add_.Tensor",
                         "mul_.Tensor",
                         "tanh_backward",
                         "sigmoid_backward",
                         "gelu_backward",
                         "silu_backward",
                         "threshold_backward",
                         "hardswish_backward",
                         "ldexp.Tensor",
                         "_add_relu.Tensor",
                         "polar",
                         "complex",
                         "native_dropout_backward",
                         "fmod.Tensor",
                         "remainder.Tensor",
                         "maximum",
                         "heaviside",
                         "hypot",
                         "copysign.Tensor",
                         "xlogy.Tensor",
                         "_standard_gamma_grad",
                         "pow.Tensor_Tensor",
                         "eq.Tensor",
                         "atan2",
                         "nextafter",
                         "binomial",
                         "floor_divide_.Tensor",
                         "rsub.Tensor",
                         "true_divide.Tensor",
                         "bitwise_and.Tensor",
                         "_prelu_kernel",
                         "_prelu_kernel_backward",
                         "log_sigmoid_backward",
                         "hardtanh_backward",
                         "logit_backward",
                         "huber_loss_backward"})
    for (auto [a, b] :
         std::vector<std::pair<at::Tensor, at::Tensor>>{{floats({3, 4}), floats({3, 4})},
                                                        {floats({3, 4}), floats({4})},
                                                        {floats({3, 1}), floats({4})},
                                                        {floats({2, 3, 4, 5}), floats({1, 3, 1, 1})},
                                                        {floats({2, 3, 4, 5}), floats({2, 3, 4, 5})},
                                                        {floats({0, 3}), floats({3})},
                                                        {floats({}), floats({})},
                                                        {floats({3}), floats({})},
                                                        {floats({3, 4}), indices({3, 4}) + 1},
                                                        {indices({3, 4}) + 1, floats({3, 4})},
                                                        {indices({3, 4}), indices({3, 4}) + 1},
                                                        {floats({3, 4}), complexes({3, 4})},
                                                        {bools({3, 4}), floats({3, 4})},
                                                        {indices({3, 4}), indices({4}) + 1},
                                                        {bools({3, 4}), bools({4})},
                                                        {floats({2, 3, 4}), floats({4})}}) {
      std::string name = op;
      std::vector<c10::IValue> arguments{a, b};
      // oneDNN takes them for alike and reads past the end
      if (name == "gelu_backward" && (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type())) continue;
      if (name == "threshold_backward") arguments.emplace_back(0.5);
      if (name == "native_dropout_backward") arguments = {a, b.to(at::kBool), 2.0};
      if (name == "_prelu_kernel_backward") arguments = {a, a, b};
      if (name == "log_sigmoid_backward") arguments = {a, b, b};
      if (name == "hardtanh_backward") arguments = {a, b, -1.0, 1.0};
      if (name == "huber_loss_backward") arguments = {a, b, a, int64_t(0), 1.0};
      samples.push_back({"aten::" + name, arguments});
    }
  for (const char* op :
       {"add.Scalar", "sub.Scalar", "mul.Scalar", "div.Scalar", "rsub.Scalar", "floor_divide.Scalar",
        "fmod.Scalar", "remainder.Scalar", "fill.Scalar", "copysign.Scalar", "xlogy.Scalar_Other",
        "_add_relu.Scalar", "bitwise_and.Scalar", "__lshift__.Scalar", "__rshift__.Scalar",
        "pow.Tensor_Scalar", "eq.Scalar", "lt.Scalar"})
    for (const at::Tensor& x :
         {floats({3, 4}), floats({2, 3, 4, 5}), floats({0, 3}), floats({}), indices({3, 4}), bools({3})})
      for (const c10::IValue& number : {c10::IValue(2), c10::IValue(2.5)})
        samples.push_back({std::string("aten::") + op, {x, number}});
  for (const char* op : {"remainder.Scalar_Tensor", "xlogy.Scalar_Self", "pow.Scalar"})
    for (const at::Tensor& x : {floats({3, 4}), floats({}), indices({3, 4}) + 1}) {
      samples.push_back({std::string("aten::") + op, {c10::IValue(2), x}});
      samples.push_back({std::string("aten::") + op, {c10::IValue(2.5), x}});
    }
  for (auto [c, a, b] : std::vector<std::tuple<at::Tensor, at::Tensor, at::Tensor>>{
           {bools({3, 4}), floats({3, 4}), floats({3, 4})},
           {bools({4}), floats({3, 1}), floats({})},
           {bools({2, 3, 4, 5}), floats({2, 3, 4, 5}), floats({3, 1, 1})},
           {bools({3}), indices({3}), floats({3})},
           {bools({0, 3}), floats({3}), floats({})},
           {bools({}), floats({}), floats({})}}) {
    samples.push_back({"aten::where.self", {c, a, b}});
    samples.push_back({"aten::masked_fill.Tensor", {a, c, floats({})}});
    samples.push_back({"aten::masked_fill.Scalar", {a, c, 0.5}});
    samples.push_back({"aten::masked_fill_.Scalar", {a, c, 0.5}});
    samples.push_back({"aten::lerp.Tensor", {a, b, b}});
    samples.push_back({"aten::addcmul", {a, b, b}});
  }
  for (const at::Tensor& x : {floats({3, 4}), floats({2, 3, 4, 5}), floats({0, 3}), floats({})}) {
    samples.push_back({"aten::native_dropout", {x, 0.5, true}});
    samples.push_back({"aten::native_dropout", {x, 0.5, false}});
    samples.push_back({"aten::_fused_dropout", {x, 0.5}});
    samples.push_back({"aten::bernoulli.p", {x, 0.5}});
    samples.push_back({"aten::bernoulli_.float", {x, 0.5}});
    samples.push_back({"aten::normal_functional", {x}});
    samples.push_back({"aten::uniform", {x}});
    samples.push_back({"aten::div.Scalar_mode", {x, 2.0, "floor"}});
    samples.push_back({"aten::mvlgamma", {x + 3, 2}});
    samples.push_back({"aten::rrelu_with_noise", {x, at::zeros_like(x), 0.1, 0.3, true}});
    samples.push_back({"aten::rrelu_with_noise", {x, at::zeros_like(x), 0.1, 0.3, false}});
    samples.push_back({"aten::rrelu_with_noise_", {x.clone(), at::zeros_like(x), 0.1, 0.3, true}});
    samples.push_back({"aten::rrelu_with_noise_functional", {x, x, 0.1, 0.3, true}});
    samples.push_back({"aten::rrelu_with_noise_backward", {x, x, x, 0.1, 0.3, true, false}});
    samples.push_back({"aten::polygamma", {2, x}});
  }
  for (const char* op : {"relu_", "abs_", "hardtanh_", "hardswish_", "logit_", "celu_", "nan_to_num_",
                         "logical_not_", "relu6_", "exp_", "zero_", "selu_"})
    for (const at::Tensor& x : {floats({3, 4}), floats({}), floats({2, 3, 4, 5})})
      samples.push_back({std::string("aten::") + op, {x}});
  samples.push_back({"aten::abs.out", {floats({3, 4}), floats({3, 4})}});
  samples.push_back({"aten::abs.out", {floats({3, 4}), floats({0})}});
  samples.push_back({"aten::where.self_out", {bools({3}), floats({3}), floats({3}), floats({3})}});
  samples.push_back({"aten::rsub.Tensor_out", {floats({3}), floats({3}), 1, floats({3})}});
  return samples;
}

std::vector<Sample> reductions() {
  std::vector<Sample> samples;
  for (const at::Tensor& x :
       {floats({3, 4}), floats({2, 3, 4, 5}), floats({}), floats({5}), indices({3, 4}), floats({2, 0})}) {
    for (const char* op :
         {"max", "min", "median", "nanmedian", "prod", "sum", "mean", "count_nonzero", "norm.Scalar",
          "_aminmax", "aminmax", "all", "any", "argmax", "nansum", "_is_all_true", "trace"})
      samples.push_back({std::string("aten::") + op, {x}});
    for (const char* op :
         {"var.correction", "std.correction", "var_mean.correction", "std_mean.correction"}) {
      samples.push_back({std::string("aten::") + op, {x}});
      samples.push_back({std::string("aten::") + op, {x, ints({-1}), 1, true}});
      samples.push_back({std::string("aten::") + op, {x, ints({0}), 0, false}});
      if (x.dim() > 2) samples.push_back({std::string("aten::") + op, {x, ints({0, 2}), none, false}});
    }
    for (bool keep : {false, true}) {
      for (const char* op : {"max.dim", "min.dim", "median.dim", "nanmedian.dim", "mode", "cummax", "cummin",
                             "_aminmax.dim"}) {
        std::vector<c10::IValue> arguments{x, -1, keep};
        if (std::string(op).starts_with("cum")) arguments.pop_back();
        samples.push_back({std::string("aten::") + op, arguments});
        arguments[1] = 0;
        samples.push_back({std::string("aten::") + op, arguments});
      }
      samples.push_back({"aten::kthvalue", {x, 1, -1, keep}});
      samples.push_back({"aten::kthvalue", {x, 1, 0, keep}});
      samples.push_back({"aten::logsumexp", {x, ints({-1}), keep}});
      samples.push_back({"aten::logsumexp", {x, ints({0}), keep}});
      samples.push_back({"aten::nansum", {x, ints({0}), keep}});
      samples.push_back({"aten::prod.dim_int", {x, 0, keep}});
      samples.push_back({"aten::linalg_vector_norm", {x, 2, ints({0}), keep}});
      samples.push_back({"aten::linalg__powsum", {x, 2, ints({0}), keep}});
      samples.push_back({"aten::amax", {x, ints({0}), keep}});
      samples.push_back({"aten::all.dim", {x, 0, keep}});
    }
    samples.push_back({"aten::count_nonzero.dim_IntList", {x, ints({0})}});
    samples.push_back({"aten::_logcumsumexp", {x, 0}});
    samples.push_back({"aten::logcumsumexp", {x, 0}});
    samples.push_back({"aten::cumsum", {x, 0}});
    samples.push_back({"aten::cumprod", {x, 0}});
    samples.push_back({"aten::dist", {x, x}});
    samples.push_back({"aten::renorm", {x, 2, 0, 1.0}});
    samples.push_back({"aten::sort", {x}});
    samples.push_back({"aten::sort.stable", {x, true, 0, false}});
    samples.push_back({"aten::topk", {x, 1, 0}});
    samples.push_back({"aten::topk", {x, 2}});
    samples.push_back({"aten::sum", {x, at::kDouble}});
    samples.push_back({"aten::prod", {x, at::kDouble}});
    samples.push_back({"aten::mean", {x, at::kDouble}});
    samples.push_back({"aten::_softmax", {x, 0, false}});
    samples.push_back({"aten::_safe_softmax", {x, 0}});
    samples.push_back({"aten::_log_softmax", {x, -1, false}});
    samples.push_back({"aten::cross", {floats({2, 3}), floats({2, 3}), 1}});
    samples.push_back({"aten::linalg_cross", {floats({2, 3}), floats({1, 3})}});
  }
  return samples;
}

}  // namespace tandem::samples
