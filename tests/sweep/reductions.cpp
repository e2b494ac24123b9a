// Sums, extrema, scans, orders and statistics.
#include "sweep.h"

#include <ATen/ATen.h>

namespace tandem::sweep {

Rows reduction_rows() {
  const Samples any = unary(), positive = unary(0.2, 2), rows = along(), planes = matrices();
  const Samples holes = both({{holed({5, 7})}, {holed({9})}, {holed({2, 3, 4})}, {holed({4, 6}).t()}, {holed({3, 5}).sliced()}});
  const Samples graphs = both({{f({5, 7}), f({5, 7})}, {f({9}), f({9})}, {f({4, 6}).t(), f({4, 6})}});
  return {
      {"sum", any, [](In x) { return at::sum(x); }},
      {"sum/dim", rows, [](In x) { return at::sum(x, at::IntArrayRef({-1})); }},
      {"sum/dims_keep", planes,
       [](In x) {
         return at::sum(x, at::IntArrayRef({0, -1}), true);
       }},
      {"sum/dtype", any, [](In x) { return at::sum(x, at::kDouble); }},
      {"sum/complex", both({{c({3, 4})}, {c({4, 3}).t()}, {c({})}}), [](In x) { return at::sum(x, at::IntArrayRef({0})); }},
      {"sum_to_size", both({{f({3, 4})}, {f({3, 4}).t()}, {f({1, 4})}}),
       [](In x) {
         return x.sum_to_size({1, 4});
       }},
      {"nansum", holes, [](In x) { return at::nansum(x); }},
      {"nansum/dim", holes, [](In x) { return at::nansum(x, at::IntArrayRef({0})); }},
      {"mean", any, [](In x) { return at::mean(x); }},
      {"mean/dim", rows, [](In x) { return at::mean(x, at::IntArrayRef({0}), true); }},
      {"nanmean", holes, [](In x) { return at::nanmean(x, at::IntArrayRef({0})); }},
      {"prod", any, [](In x) { return at::prod(x); }},
      {"prod/dim", rows, [](In x) { return at::prod(x, 0); }},
      {"amax", rows, [](In x) { return at::amax(x, {-1}); }},
      {"amax/all", any, [](In x) { return at::amax(x); }},
      {"amin", rows, [](In x) { return at::amin(x, {-1}, true); }},
      {"aminmax", rows, [](In x) { return at::aminmax(x, -1); }},
      {"aminmax/all", any, [](In x) { return at::aminmax(x); }},
      {"max", any, [](In x) { return at::max(x); }},
      {"max/dim", rows, [](In x) { return at::max(x, -1); }},
      {"min", any, [](In x) { return at::min(x); }},
      {"min/dim", rows, [](In x) { return at::min(x, -1, true); }},
      {"median", any, [](In x) { return at::median(x); }},
      {"median/dim", rows, [](In x) { return at::median(x, -1); }},
      {"nanmedian", holes, [](In x) { return at::nanmedian(x); }},
      {"nanmedian/dim", holes, [](In x) { return at::nanmedian(x, 0); }},
      {"mode", rows, [](In x) { return at::mode(x, -1); }},
      {"kthvalue", rows, [](In x) { return at::kthvalue(x, 2, -1); }},
      {"topk", rows, [](In x) { return at::topk(x, 3, -1); }},
      {"topk/smallest", planes, [](In x) { return at::topk(x, 2, -1, false, false); }},
      {"sort", rows, [](In x) { return at::sort(x, -1); }},
      {"sort/stable_descending", rows, [](In x) { return at::sort(x, true, 0, true); }},
      {"sort/zero_dim", both({{f({})}}), [](In x) { return at::sort(x, 0); }},
      {"msort", rows, [](In x) { return at::msort(x); }},
      {"quantile", rows, [](In x) { return at::quantile(x, 0.3); }},
      {"quantile/tensor", with(planes, {f({3}).in(0, 1).constant()}), [](In x, In q) { return at::quantile(x, q, -1, false, "linear"); }},
      {"nanquantile", holes, [](In x) { return at::nanquantile(x, 0.6, 0); }},
      {"std", any, [](In x) { return at::std(x); }},
      {"std/dim", rows, [](In x) { return at::std(x, 0, true); }},
      {"std/correction", rows, [](In x) { return at::std(x, at::IntArrayRef({-1}), at::Scalar(0)); }},
      {"var", any, [](In x) { return at::var(x); }},
      {"var/dim", rows, [](In x) { return at::var(x, at::IntArrayRef({-1}), false); }},
      {"var/correction", rows, [](In x) { return at::var(x, at::IntArrayRef({0}), at::Scalar(1.5), true); }},
      {"std_mean", rows, [](In x) { return at::std_mean(x, at::IntArrayRef({-1})); }},
      {"var_mean", rows, [](In x) { return at::var_mean(x, at::IntArrayRef({-1}), at::Scalar(1)); }},
      {"var_mean/all", any, [](In x) { return at::var_mean(x); }},
      {"norm", any, [](In x) { return at::norm(x); }},
      {"norm/p", rows, [](In x) { return at::norm(x, 3, at::IntArrayRef({-1})); }},
      {"norm/keepdim", rows, [](In x) { return at::norm(x, at::Scalar(1), at::IntArrayRef({0}), true); }},
      {"frobenius_norm", planes,
       [](In x) {
         return at::frobenius_norm(x, at::IntArrayRef({0, -1}));
       }},
      {"linalg_vector_norm", rows, [](In x) { return at::linalg_vector_norm(x, 2, at::IntArrayRef({-1})); }},
      {"linalg_vector_norm/p", any, [](In x) { return at::linalg_vector_norm(x, 1.5); }},
      {"linalg_vector_norm/inf", both({{f({5, 7})}, {f({4, 6}).t()}}),
       [](In x) { return at::linalg_vector_norm(x, INFINITY, at::IntArrayRef({0})); }},
      {"logsumexp", rows, [](In x) { return at::logsumexp(x, at::IntArrayRef({-1})); }},
      {"special_logsumexp", rows, [](In x) { return at::special_logsumexp(x, {0}, true); }},
      {"cumsum", rows, [](In x) { return at::cumsum(x, -1); }},
      {"cumsum/dtype", rows, [](In x) { return at::cumsum(x, 0, at::kDouble); }},
      {"cumprod", along(), [](In x) { return at::cumprod(x, -1); }},
      {"cummax", rows, [](In x) { return at::cummax(x, -1); }},
      {"cummin", rows, [](In x) { return at::cummin(x, 0); }},
      {"logcumsumexp", rows, [](In x) { return at::logcumsumexp(x, -1); }},
      {"diff", rows, [](In x) { return at::diff(x); }},
      {"diff/twice", planes, [](In x) { return at::diff(x, 2, -1); }},
      {"diff/prepend", graphs, [](In x, In y) { return at::diff(x, 1, 0, y); }},
      {"gradient", both({{f({5, 7})}, {f({9})}, {f({4, 6}).t()}}), [](In x) { return at::gradient(x, std::nullopt, 0); }},
      {"gradient/spacing", both({{f({5, 7})}, {f({4, 6}).t()}}),
       [](In x) {
         return at::gradient(x, at::Scalar(0.5), at::IntArrayRef({0, 1}), 2);
       }},
      {"trapezoid", rows, [](In x) { return at::trapezoid(x, 0.5); }},
      {"trapezoid/x", graphs, [](In y, In x) { return at::trapezoid(y, x); }},
      {"trapz", graphs, [](In y, In x) { return at::trapz(y, x); }},
      {"cumulative_trapezoid", graphs, [](In y, In x) { return at::cumulative_trapezoid(y, x); }},
      {"trace", both({{f({5, 7})}, {f({4, 6}).t()}, {f({3, 3}).sliced()}, {f({0, 3})}}), [](In x) { return at::trace(x); }},
      {"renorm", both({{f({5, 7})}, {f({2, 3, 4})}, {f({4, 6}).t()}}), [](In x) { return at::renorm(x, 2, 0, 1.5); }},
      {"cov", both({{f({3, 7})}, {f({6, 4}).t()}, {f({8})}}), [](In x) { return at::cov(x); }},
      {"cov/weights", both({{f({3, 7}), index({7}, 4), f({7}).in(0.2, 1).constant()}}), [](In x, In fw, In aw) { return at::cov(x, 1, fw + 1, aw); }},
      {"corrcoef", both({{f({3, 7})}, {f({6, 4}).t()}}), [](In x) { return at::corrcoef(x); }},
      {"count_nonzero", rows,
       [](In x) {
         return Tensors{at::count_nonzero(x, at::IntArrayRef({0})), x * 2};
       }},
      {"logical_and/kept", pairs(),
       [](In x, In y) {
         return Tensors{at::logical_and(x, y), x * y};
       }},
      {"segment_reduce", both({{f({7, 3}), index({}, 7)}}),
       [](In x, In first) {
         return at::segment_reduce(x, "sum", at::stack({first, 7 - first}));
       }},
      {"prod/positive", positive, [](In x) { return at::prod(x, at::kDouble); }},
  };
}

}  // namespace tandem::sweep
