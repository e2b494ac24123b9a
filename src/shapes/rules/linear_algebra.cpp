#include "shapes/rules/helpers.h"

#include <ATen/ExpandUtils.h>

namespace tandem::rules {
namespace {

at::ScalarType complex_of(at::ScalarType dtype) {
  return c10::isComplexType(dtype) ? dtype : c10::toComplexType(dtype);
}

void columns_like_first(ShapeCall& call) {
  call.give(column_major(call.tensor(0).sizes(), call.tensor(0).scalar_type()));
}

void eigenvalues(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  call.give(make_meta(self.sizes().slice(0, size_t(self.dim() - 1)), complex_of(self.scalar_type())));
}

void eigenpairs(ShapeCall& call) {
  eigenvalues(call);
  const at::Tensor& self = call.tensor(0);
  // cuSOLVER's vectors come back row by row.
  call.give(call.device.is_cuda() ? make_meta(self.sizes(), complex_of(self.scalar_type()))
                                  : column_major(self.sizes(), complex_of(self.scalar_type())));
}

void householder(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  columns_like_first(call);
  Dims sizes(self.sizes().begin(), self.sizes().end() - 1);
  sizes.back() = std::min(self.size(-1), self.size(-2));
  call.give(make_meta(sizes, self.scalar_type()));
}

/// libtorch's Meta kernel knows LAPACK's layout; cuSOLVER's last result comes row by row.
void singular_values(ShapeCall& call) {
  if (!call.device.is_cuda() || !call.boolean(2)) return;
  const at::Tensor& self = call.tensor(0);
  const int64_t rows = self.size(-2), columns = self.size(-1), least = std::min(rows, columns);
  auto sized = [&](std::initializer_list<int64_t> last) {
    Dims sizes(self.sizes().begin(), self.sizes().end() - 2);
    sizes.append(last);
    return sizes;
  };
  const bool full = call.boolean(1);
  call.give(column_major(sized({rows, full ? rows : least}), self.scalar_type()));
  call.give(make_meta(sized({least}), c10::toRealValueType(self.scalar_type())));
  call.give(make_meta(sized({full ? columns : least, columns}), self.scalar_type()));
}

void columns_like_third(ShapeCall& call) {
  call.give(column_major(call.tensor(2).sizes(), call.tensor(2).scalar_type()));
}

/// The sizes of a right-hand side `b` of a system with matrices `a`, their batches broadcast.
Dims solution_sizes(const at::Tensor& a, const at::Tensor& b) {
  auto batch =
      at::infer_size(a.sizes().slice(0, size_t(a.dim() - 2)), b.sizes().slice(0, size_t(b.dim() - 2)));
  Dims sizes(batch.begin(), batch.end());
  sizes.push_back(b.size(-2));
  sizes.push_back(b.size(-1));
  return sizes;
}

void cholesky_solve(ShapeCall& call) {
  call.give(column_major(solution_sizes(call.tensor(1), call.tensor(0)), call.tensor(0).scalar_type()));
}

void solve_triangular(ShapeCall& call) {
  const at::Tensor& a = call.tensor(0);
  Dims sizes = solution_sizes(a, call.tensor(1));
  // Conjugate matrices that are stored by columns are not copied: the kernel solves the transposed system, by
  // rows.
  Dims batched(sizes.begin(), sizes.end());
  batched.end()[-1] = batched.end()[-2] = a.size(-1);
  bool by_rows = a.is_conj() && a.expand(batched).mT().is_contiguous();
  call.give(by_rows ? make_meta(sizes, a.scalar_type()) : column_major(sizes, a.scalar_type()));
}

void sum_of_products(ShapeCall& call) {
  call.give(make_meta({call.tensor(1).size(1), call.tensor(2).size(2)}, call.tensor(1).scalar_type()));
}

void distances(ShapeCall& call) {
  const at::Tensor &a = call.tensor(0), &b = call.tensor(1);
  TORCH_CHECK(a.dim() >= 2 && b.dim() >= 2, "cdist only supports at least 2D tensors, got: ", a.dim(),
              "D and ", b.dim(), "D");
  TORCH_CHECK(a.size(-1) == b.size(-1), "X1 and X2 must have the same number of columns. X1: ", a.size(-1),
              " X2: ", b.size(-1));
  auto sizes =
      at::infer_size(a.sizes().slice(0, size_t(a.dim() - 2)), b.sizes().slice(0, size_t(b.dim() - 2)));
  sizes.push_back(a.size(-2));
  sizes.push_back(b.size(-2));
  call.give(make_meta(sizes, a.scalar_type()));
}

void distances_backward(ShapeCall& call) {
  const at::Tensor &a = call.tensor(1), &b = call.tensor(2);
  auto sizes =
      at::infer_size(a.sizes().slice(0, size_t(a.dim() - 2)), b.sizes().slice(0, size_t(b.dim() - 2)));
  sizes.push_back(a.size(-2));
  sizes.push_back(a.size(-1));
  // Where there is nothing to compute the batches are not broadcast.
  bool nothing = b.size(-2) == 0 || c10::multiply_integers(sizes) == 0;
  call.give(nothing ? like(a) : make_meta(sizes, a.scalar_type()));
}

void own_distances(ShapeCall& call) {
  int64_t n = call.tensor(0).size(0);
  call.give(make_meta({n < 2 ? 0 : n * (n - 1) / 2}, call.tensor(0).scalar_type()));
}
void own_distances_backward(ShapeCall& call) { call.give(contiguous_like(call.tensor(1))); }

void pseudo_inverse(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  if (self.dim() < 2) return;  // libtorch has the error for it
  Dims sizes(self.sizes().begin(), self.sizes().end());
  std::swap(sizes.end()[-1], sizes.end()[-2]);
  call.give(make_meta(sizes, self.scalar_type()));
}

/// Of 1 x 1 matrices libtorch takes the exponential element by element.
void matrix_exponential(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  call.give(self.numel() > 0 && self.size(-1) == 1 ? like(self) : contiguous_like(self));
}

constexpr Row linear_algebra_rows[] = {
    {"aten::linalg_pinv.atol_rtol_tensor", pseudo_inverse},
    {"aten::cholesky", columns_like_first},
    {"aten::cholesky_inverse", columns_like_first},
    {"aten::cholesky_solve", cholesky_solve},
    {"aten::_cholesky_solve_helper", columns_like_first},
    {"aten::linalg_eig", eigenpairs},
    {"aten::_linalg_eigvals", eigenvalues},
    {"aten::linalg_matrix_exp", matrix_exponential},
    {"aten::geqrf", householder},
    {"aten::linalg_householder_product", columns_like_first},
    {"aten::_linalg_svd", singular_values},
    {"aten::ormqr", columns_like_third},
    {"aten::linalg_solve_triangular", solve_triangular},
    {"aten::addbmm", sum_of_products},
    {"aten::_cdist_forward", distances},
    {"aten::_cdist_backward", distances_backward},
    {"aten::_pdist_forward", own_distances},
    {"aten::_pdist_backward", own_distances_backward},
};

}  // namespace

std::span<const Row> linear_algebra() { return linear_algebra_rows; }

}  // namespace tandem::rules
