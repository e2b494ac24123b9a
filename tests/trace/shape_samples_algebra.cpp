#include "trace/shape_samples.h"

#include <ATen/ExpandUtils.h>

namespace tandem::samples {

std::vector<Sample> algebra() {
  std::vector<Sample> samples;
  for (const at::Tensor& a : {matrices({3, 3}), matrices({2, 4, 4}), matrices({2, 3, 5, 5})}) {
    for (const char* op :
         {"cholesky", "cholesky_inverse", "linalg_eig", "_linalg_eigvals", "linalg_matrix_exp", "geqrf",
          "linalg_inv_ex", "linalg_cholesky_ex", "_linalg_eigh", "_linalg_svd", "linalg_qr", "_linalg_det",
          "_linalg_slogdet", "linalg_lu_factor_ex", "linalg_lu", "linalg_ldl_factor_ex", "linalg_pinv"})
      samples.push_back({std::string("aten::") + op, {a}});
    at::Tensor b = floats(a.sizes()).narrow(-1, 0, 2).contiguous();
    for (bool hermitian : {false, true})
      samples.push_back({"aten::linalg_pinv.atol_rtol_tensor", {a, none, floats({}), hermitian}});
    samples.push_back({"aten::linalg_pinv.atol_rtol_tensor", {b}});
    samples.push_back({"aten::linalg_pinv.atol_rtol_tensor", {b.slice(-2, 0, 0)}});
    samples.push_back({"aten::cholesky_solve", {b, a}});
    samples.push_back({"aten::_cholesky_solve_helper", {b, a, false}});
    samples.push_back({"aten::linalg_solve_triangular", {a, b, true}});
    samples.push_back({"aten::linalg_solve_triangular", {a, b.mT().contiguous(), true, false}});
    at::Tensor c = a.to(at::kComplexFloat);
    for (const at::Tensor& matrix : {c, c.conj(), c.mT().conj(), c.mT().contiguous().mT().conj()}) {
      samples.push_back({"aten::linalg_solve_triangular", {matrix, b.to(at::kComplexFloat), true}});
      samples.push_back(
          {"aten::linalg_solve_triangular", {matrix, at::stack({b, b}).to(at::kComplexFloat), true}});
    }
    samples.push_back({"aten::triangular_solve", {b, a}});
    samples.push_back({"aten::_linalg_solve_ex", {a, b}});
    samples.push_back({"aten::linalg_lstsq", {a, b}});
    auto [qr, tau] = at::geqrf(a);
    samples.push_back({"aten::linalg_householder_product", {qr, tau}});
    samples.push_back({"aten::ormqr", {qr, tau, b}});
    auto [lu, pivots] = at::linalg_lu_factor(a);
    samples.push_back({"aten::linalg_lu_solve", {lu, pivots, b}});
    samples.push_back({"aten::lu_unpack", {lu, pivots}});
  }
  at::Tensor v = floats({4}), m = floats({3, 4}), s = floats({5, 4}), batch = floats({2, 3, 4}),
             right = floats({2, 4, 5});
  samples.push_back({"aten::dot", {v, v}});
  samples.push_back({"aten::vdot", {v, v}});
  samples.push_back({"aten::mv", {m, v}});
  samples.push_back({"aten::mm", {m, s.t()}});
  samples.push_back({"aten::bmm", {batch, right}});
  samples.push_back({"aten::addmm", {floats({5}), m, s.t()}});
  samples.push_back({"aten::addmv", {floats({3}), m, v}});
  samples.push_back({"aten::addr", {floats({3, 4}), floats({3}), v}});
  samples.push_back({"aten::addr", {floats({4}), floats({3}), v}});
  samples.push_back({"aten::addbmm", {floats({3, 5}), batch, right}});
  samples.push_back({"aten::addbmm", {floats({5}), batch, right}});
  samples.push_back({"aten::addbmm_", {floats({3, 5}), batch, right}});
  samples.push_back({"aten::addbmm_", {floats({5}), batch, right}});
  samples.push_back({"aten::baddbmm", {floats({2, 3, 5}), batch, right}});
  samples.push_back({"aten::_trilinear",
                     {floats({3, 4}), floats({2, 4, 5}), floats({3, 5}), ints({1, 3}), ints({0}),
                      ints({1, 2}), ints({2, 3})}});
  samples.push_back({"aten::conv_tbc", {floats({6, 2, 3}), floats({3, 3, 4}), floats({4}), 1}});
  for (auto [a, b] : std::vector<std::pair<at::Tensor, at::Tensor>>{{floats({3, 4}), floats({5, 4})},
                                                                    {floats({2, 3, 4}), floats({1, 5, 4})},
                                                                    {floats({40, 4}), floats({50, 4})},
                                                                    {floats({3, 0}), floats({5, 0})},
                                                                    {floats({2, 3, 4}), floats({2, 5, 4})},
                                                                    {floats({0, 3, 4}), floats({5, 4})},
                                                                    {floats({3, 4}), floats({0, 5, 4})}}) {
    std::vector<int64_t> sizes =
        at::infer_size(a.sizes().slice(0, size_t(a.dim() - 2)), b.sizes().slice(0, size_t(b.dim() - 2)));
    sizes.insert(sizes.end(), {a.size(-2), b.size(-2)});
    for (double p : {2.0, 1.0}) {
      samples.push_back({"aten::_cdist_forward", {a, b, p, none}});
      samples.push_back({"aten::_cdist_backward", {floats(sizes), a, b, p, floats(sizes)}});
    }
    samples.push_back({"aten::_euclidean_dist", {a, b}});
  }
  samples.push_back({"aten::_pdist_forward", {floats({4, 3})}});
  samples.push_back({"aten::_pdist_backward", {floats({6}), floats({4, 3}), 2.0, floats({6})}});
  for (const at::Tensor& x : {floats({8}), floats({4, 6}), floats({2, 3, 4, 6})}) {
    int64_t last = x.dim() - 1;
    at::Tensor c = complexes(x.sizes());
    std::vector<std::vector<int64_t>> dims{{last}, {0}};
    if (x.dim() > 1) dims.insert(dims.end(), {{last - 1, last}, {last, last - 1}, {0, last}});
    for (const auto& d : dims) {
      for (bool onesided : {true, false}) samples.push_back({"aten::_fft_r2c", {x, ints(d), 0, onesided}});
      samples.push_back({"aten::_fft_c2c", {c, ints(d), 0, true}});
      samples.push_back({"aten::_fft_c2c", {c, ints(d), 2, false}});
      samples.push_back({"aten::_fft_c2r", {c, ints(d), 0, 2 * x.size(d.back()) - 2}});
    }
  }
  return samples;
}

std::vector<Sample> others() {
  std::vector<Sample> samples;
  samples.push_back({"aten::linspace.Tensor_Tensor", {floats({}), floats({}), 5}});
  samples.push_back({"aten::logspace.Tensor_Scalar", {floats({}), 2.0, 5}});
  for (const at::Tensor& x :
       {floats({3, 4}), floats({2, 3, 4, 5}), floats({2, 3, 4, 5, 6}), floats({}), floats({0, 3})}) {
    for (auto format :
         {at::MemoryFormat::Contiguous, at::MemoryFormat::Preserve, at::MemoryFormat::ChannelsLast}) {
      samples.push_back({"aten::clone", {x, format}});
      samples.push_back({"aten::_to_copy", {x, at::kDouble, none, none, none, false, format}});
      samples.push_back({"aten::empty_like", {x, none, none, none, none, format}});
      samples.push_back({"aten::zeros_like", {x, at::kLong, none, none, none, format}});
    }
    samples.push_back({"aten::_to_copy", {x, at::kHalf}});
    samples.push_back({"aten::copy_", {x, at::rand_like(x)}});
    samples.push_back({"aten::copy", {x, at::rand_like(x)}});
    samples.push_back({"aten::ones_like", {x}});
    samples.push_back({"aten::rand_like", {x}});
    samples.push_back({"aten::randn_like", {x}});
    samples.push_back({"aten::new_zeros", {x, ints({2, 3})}});
    samples.push_back({"aten::new_empty_strided", {x, ints({2, 3}), ints({1, 2})}});
    samples.push_back({"aten::view_copy", {x, ints({-1})}});
    samples.push_back({"aten::glu", {x}});
    if (x.dim() && x.size(-1) % 2 == 0) {
      std::vector<int64_t> half = x.sizes().vec();
      half.back() /= 2;
      samples.push_back({"aten::glu_backward", {floats(half), x, -1}});
      samples.push_back({"aten::glu_backward_jvp", {x, floats(half), x, floats(half), x, -1}});
      samples.push_back({"aten::glu_jvp", {floats(half), x, x, -1}});
    }
    samples.push_back({"aten::histc", {x, 5}});
    samples.push_back({"aten::expand", {x, ints({2, 2, -1, -1, -1, -1, -1})}});
    samples.push_back({"aten::t", {x}});
    samples.push_back({"aten::squeeze", {x}});
    samples.push_back({"aten::alias", {x}});
    samples.push_back({"aten::detach", {x}});
    samples.push_back({"aten::unsqueeze", {x, 0}});
    samples.push_back({"aten::_reshape_alias", {x, ints({x.numel()}), ints({1})}});
    samples.push_back({"aten::view", {x, ints({x.numel()})}});
    samples.push_back({"aten::split.Tensor", {x, 2}});
    samples.push_back({"aten::unsafe_split.Tensor", {x, 2}});
    samples.push_back({"aten::split_with_sizes", {x, ints({1, x.dim() ? x.size(0) - 1 : 0})}});
    samples.push_back({"aten::unsafe_split_with_sizes", {x, ints({1, x.dim() ? x.size(0) - 1 : 0})}});
    samples.push_back({"aten::select.int", {x, 0, 1}});
    samples.push_back({"aten::slice.Tensor", {x, -1, 1, 3}});
    samples.push_back({"aten::transpose.int", {x, 0, 1}});
    samples.push_back({"aten::transpose.int", {x, -1, 0}});
    samples.push_back({"aten::transpose.int", {x, 0, 0}});
    samples.push_back({"aten::transpose.int", {x, 0, 7}});
    samples.push_back({"aten::diagonal", {x}});
    samples.push_back({"aten::squeeze.dim", {x, 0}});
    samples.push_back({"aten::view.dtype", {x, at::kInt}});
    samples.push_back({"aten::_unsafe_view", {x, ints({x.numel()})}});
    samples.push_back({"aten::full_like", {x, 2}});
    samples.push_back({"aten::new_full", {x, ints({2, 3}), 2}});
    samples.push_back({"aten::new_ones", {x, ints({2, 3})}});
    samples.push_back({"aten::new_empty", {x, ints({2, 3})}});
    samples.push_back({"aten::randint_like", {x, 5}});
    samples.push_back({"aten::bernoulli.Tensor", {x, x}});
    samples.push_back({"aten::exponential", {x}});
    samples.push_back({"aten::log_normal", {x}});
    samples.push_back({"aten::zero", {x}});
    samples.push_back({"aten::is_same_size", {x, x}});
    samples.push_back({"aten::_sample_dirichlet", {x}});
    samples.push_back({"aten::_dirichlet_grad", {x, x, x}});
    samples.push_back({"aten::norm.ScalarOpt_dtype", {x, 2, at::kDouble}});
    samples.push_back(
        {"aten::masked_scatter_backward", {x, at::ones(x.sizes(), at::kBool), ints({x.numel() + 2})}});
    samples.push_back({"aten::_is_any_true", {x.gt(0.5)}});
    samples.push_back({"aten::unbind.int", {x}});
  }
  for (const char* op : {"full", "zeros", "ones", "rand", "randn", "empty.memory_format"}) {
    std::vector<c10::IValue> arguments{ints({2, 3})};
    if (std::string(op) == "full") arguments.emplace_back(1.5);
    samples.push_back({std::string("aten::") + op, arguments});
  }
  samples.push_back({"aten::scalar_tensor", {1.5}});
  samples.push_back({"aten::arange", {5}});
  samples.push_back({"aten::arange.start", {1, 5}});
  samples.push_back({"aten::randint", {5, ints({2, 3})}});
  samples.push_back({"aten::randint.low", {1, 5, ints({2, 3})}});
  samples.push_back({"aten::logspace", {0, 1, 5}});
  samples.push_back({"aten::normal.float_float", {0.0, 1.0, ints({2, 3})}});
  samples.push_back({"aten::hann_window", {5}});
  samples.push_back({"aten::_int_mm", {indices({17, 8}).to(at::kChar), indices({8, 16}).to(at::kChar)}});
  // The CUDA kernel reads misaligned memory for transposed arguments.
  if (!at::hasCUDA())
    samples.push_back({"aten::_transform_bias_rescale_qkv", {floats({2, 4, 24}), floats({24}), 2}});
  samples.push_back(
      {"aten::_segment_reduce_backward",
       {floats({2, 3}), floats({2, 3}), floats({4, 3}), "sum", at::tensor(std::vector<int64_t>{2, 2})}});
  samples.push_back({"aten::nonzero_static", {floats({3, 4}), 5}});
  samples.push_back({"aten::eye", {3}});
  auto list = [] { return tensors({floats({3, 4}), floats({5})}); };
  auto steps = [] { return tensors({floats({}), floats({})}); };
  for (const char* op : {"aten::_fused_adam_", "aten::_fused_adamw_"})
    samples.push_back(
        {op,
         {list(), list(), list(), list(), tensors({}), steps(), 0.1, 0.9, 0.99, 0.0, 1e-8, false, false}});
  for (const char* op : {"aten::_fused_adam_.tensor_lr", "aten::_fused_adamw_.tensor_lr"})
    samples.push_back({op,
                       {list(), list(), list(), list(), tensors({}), steps(), floats({}), 0.9, 0.99, 0.0,
                        1e-8, false, false}});
  samples.push_back({"aten::_fused_sgd_.tensor_lr",
                     {list(), list(), tensors({}), 0.0, 0.0, floats({}), 0.0, false, false, true}});
  samples.push_back(
      {"aten::_fused_sgd_", {list(), list(), tensors({}), 0.0, 0.0, 0.1, 0.0, false, false, true}});
  samples.push_back({"aten::_fused_adagrad_", {list(), list(), list(), steps(), 0.1, 0.0, 0.0, 1e-8, false}});
  for (const char* op : {"aten::_foreach_add.List", "aten::_foreach_mul.List", "aten::_foreach_sqrt",
                         "aten::_foreach_add_.Scalar"}) {
    std::vector<c10::IValue> arguments{list()};
    if (std::string(op).ends_with("List")) arguments.push_back(list());
    if (std::string(op).ends_with("Scalar")) arguments.emplace_back(1.0);
    samples.push_back({op, arguments});
  }
  return samples;
}

}  // namespace tandem::samples
