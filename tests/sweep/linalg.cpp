// Decompositions and solvers.
#include "sweep.h"

#include <ATen/ATen.h>

namespace tandem::sweep {

Rows linalg_rows() {
  const Samples positive = spd_matrices(), squares = square_matrices();
  const Samples tall = both({{f({5, 3})}, {f({2, 4, 3})}, {f({5, 3}).t()}, {f({4, 2}).sliced()}});
  const Samples systems = both({{square({3, 3}), f({3, 2})},
                                {square({2, 4, 4}), f({2, 4, 3})},
                                {square({3, 3}).t(), f({3, 2}).t()},
                                {square({2, 3, 3}), f({3, 2})},
                                {square({0, 2, 2}), f({0, 2, 1})}});
  const Samples definite =
      both({{spd({3, 3}), f({3, 2})}, {spd({2, 4, 4}), f({2, 4, 3})}, {spd({3, 3}).t(), f({3, 2}).t()}});
  const Samples wide = tall + both({{f({3, 5})}, {f({2, 3, 4}).t()}});
  return {
      {"cholesky", positive, [](In a) { return at::cholesky(a); }},
      {"cholesky/upper", positive, [](In a) { return at::cholesky(a, true); }},
      {"linalg_cholesky", positive, [](In a) { return at::linalg_cholesky(a); }},
      {"linalg_cholesky_ex", positive, [](In a) { return at::linalg_cholesky_ex(a, true); }},
      {"cholesky_inverse", positive, [](In a) { return at::cholesky_inverse(a.tril()); }},
      {"cholesky_solve", definite, [](In a, In b) { return at::cholesky_solve(b, a.tril()); }},
      {"inverse", squares, [](In a) { return at::inverse(a); }},
      {"linalg_inv", squares, [](In a) { return at::linalg_inv(a); }},
      {"linalg_inv_ex", squares, [](In a) { return at::linalg_inv_ex(a); }},
      {"det", squares, [](In a) { return at::det(a); }},
      {"linalg_det", squares, [](In a) { return at::linalg_det(a); }},
      {"logdet", positive, [](In a) { return at::logdet(a); }},
      {"slogdet", squares, [](In a) { return at::slogdet(a); }},
      {"linalg_slogdet", squares, [](In a) { return at::linalg_slogdet(a); }},
      {"linalg_solve", systems, [](In a, In b) { return at::linalg_solve(a, b); }},
      {"linalg_solve/vector", both({{square({3, 3}), f({3})}, {square({3, 3}).t(), f({3}).sliced()}}),
       [](In a, In b) { return at::linalg_solve(a, b); }},
      {"linalg_solve/right", both({{square({3, 3}), f({2, 3})}}),
       [](In a, In b) { return at::linalg_solve(a, b, false); }},
      {"linalg_solve_ex", systems, [](In a, In b) { return at::linalg_solve_ex(a, b); }},
      {"linalg_solve_triangular", systems,
       [](In a, In b) { return at::linalg_solve_triangular(a, b, true); }},
      {"linalg_solve_triangular/lower", systems,
       [](In a, In b) { return at::linalg_solve_triangular(a, b, false, true, true); }},
      {"triangular_solve", systems, [](In a, In b) { return at::triangular_solve(b, a); }},
      {"linalg_qr", tall, [](In a) { return at::linalg_qr(a); }},
      {"linalg_qr/complete", square_matrices(), [](In a) { return at::linalg_qr(a, "complete"); }},
      {"linalg_qr/r_throws", both({{f({5, 3})}}), [](In a) { return std::get<1>(at::linalg_qr(a, "r")); }},
      {"qr", tall, [](In a) { return at::qr(a); }},
      {"linalg_svd", wide, [](In a) { return at::linalg_svd(a, false); }},
      {"svd", wide, [](In a) { return at::svd(a); }},
      {"linalg_svdvals", wide, [](In a) { return at::linalg_svdvals(a); }},
      {"linalg_eigh", positive, [](In a) { return at::linalg_eigh(a); }},
      {"linalg_eigvalsh", positive, [](In a) { return at::linalg_eigvalsh(a); }},
      {"linalg_lu", squares, [](In a) { return at::linalg_lu(a); }},
      {"linalg_lu_factor", squares, [](In a) { return at::linalg_lu_factor(a); }},
      {"linalg_lu_factor_ex", squares, [](In a) { return at::linalg_lu_factor_ex(a); }},
      {"lu_unpack", squares,
       [](In a) {
         auto [lu, pivots] = at::linalg_lu_factor(a);
         return at::lu_unpack(lu, pivots);
       }},
      {"linalg_lu_solve", systems,
       [](In a, In b) {
         auto [lu, pivots] = at::linalg_lu_factor(a);
         return at::linalg_lu_solve(lu, pivots, b);
       }},
      {"lu_solve", both({{square({3, 3}), f({3, 2})}, {square({2, 4, 4}), f({2, 4, 3})}}),
       [](In a, In b) {
         auto [lu, pivots] = at::linalg_lu_factor(a);
         return at::lu_solve(b, lu, pivots);
       }},
      {"linalg_ldl_solve", definite,
       [](In a, In b) {
         auto [ld, pivots] = at::linalg_ldl_factor(a.detach());
         return at::linalg_ldl_solve(ld, pivots, b.detach()) + b * a.sum();
       }},
      {"linalg_pinv", wide, [](In a) { return at::linalg_pinv(a); }},
      {"linalg_pinv/hermitian", positive, [](In a) { return at::linalg_pinv(a, 1e-6, true); }},
      {"pinverse", wide, [](In a) { return at::pinverse(a); }},
      {"linalg_householder_product",
       both({{f({4, 3}), f({3}).in(0.1, 0.5)}, {f({2, 4, 3}), f({2, 3}).in(0.1, 0.5)}}),
       [](In a, In tau) { return at::linalg_householder_product(a, tau); }},
      {"orgqr", both({{f({4, 3}), f({3}).in(0.1, 0.5)}}), [](In a, In tau) { return at::orgqr(a, tau); }},
      {"linalg_tensorinv", both({{square({6, 6})}, {square({6, 6}).t()}}),
       [](In a) { return at::linalg_tensorinv(a.reshape({6, 2, 3}), 1); }},
      {"linalg_tensorsolve", both({{square({6, 6}), f({2, 3})}}),
       [](In a, In b) { return at::linalg_tensorsolve(a.reshape({2, 3, 2, 3}), b); }},
      {"linalg_matrix_norm", wide, [](In a) { return at::linalg_matrix_norm(a, "fro"); }},
      {"linalg_matrix_norm/nuclear", tall, [](In a) { return at::linalg_matrix_norm(a, "nuc"); }},
      {"linalg_matrix_norm/spectral", tall, [](In a) { return at::linalg_matrix_norm(a, 2); }},
      {"linalg_norm", wide, [](In a) { return at::linalg_norm(a); }},
      {"linalg_norm/one", both({{f({5, 3})}, {f({5, 3}).t()}}),
       [](In a) { return at::linalg_norm(a, at::Scalar(1)); }},
      {"nuclear_norm", both({{f({5, 3})}, {f({5, 3}).t()}}), [](In a) { return at::nuclear_norm(a); }},
      {"linalg_cond", both({{square({3, 3})}, {square({2, 4, 4})}}), [](In a) { return at::linalg_cond(a); }},
      {"linalg_cond/fro_throws", both({{square({3, 3})}}), [](In a) { return at::linalg_cond(a, "fro"); }},
      {"linalg_vander", both({{f({4})}, {f({2, 3})}, {f({3}).sliced()}}),
       [](In a) { return at::linalg_vander(a); }},
      {"linalg_diagonal", squares, [](In a) { return at::linalg_diagonal(a); }},
      {"linalg_matrix_exp", both({{square({3, 3})}, {square({2, 4, 4})}, {square({3, 3}).t()}}),
       [](In a) { return at::linalg_matrix_exp(a); }},
  };
}

}  // namespace tandem::sweep
