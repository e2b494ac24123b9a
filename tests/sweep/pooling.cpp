// Pooling and its inverses.
#include "sweep.h"

#include <ATen/ATen.h>

namespace tandem::sweep {

Rows pooling_rows() {
  const Samples lines = signals(), planes = images(), solids = volumes();
  const Samples batches =
      both({{f({2, 4, 8, 6})}, {f({4, 8, 6})}, {f({2, 4, 8, 6}).channels_last()}, {f({2, 4, 8, 6}).t()}});
  return {
      {"avg_pool1d", lines, [](In x) { return at::avg_pool1d(x, 3, 2, 1); }},
      {"avg_pool2d", planes, [](In x) { return at::avg_pool2d(x, {3, 2}, {2, 2}, {1, 0}); }},
      {"avg_pool2d/ceil", planes, [](In x) { return at::avg_pool2d(x, 3, 2, 1, true, false); }},
      {"avg_pool2d/divisor", planes, [](In x) { return at::avg_pool2d(x, 2, {}, 0, false, true, 3); }},
      {"avg_pool3d", solids, [](In x) { return at::avg_pool3d(x, 2, 1, 1, false, false); }},
      {"max_pool1d", lines, [](In x) { return at::max_pool1d(x, 3, 2, 1); }},
      {"max_pool1d_with_indices", lines, [](In x) { return at::max_pool1d_with_indices(x, 3, 1, 0, 2); }},
      {"max_pool2d", planes, [](In x) { return at::max_pool2d(x, 2); }},
      {"max_pool2d_with_indices", planes,
       [](In x) { return at::max_pool2d_with_indices(x, 3, 2, 1, 1, true); }},
      {"max_pool3d", solids, [](In x) { return at::max_pool3d(x, 2); }},
      {"max_pool3d_with_indices", solids, [](In x) { return at::max_pool3d_with_indices(x, 2, 1, 1); }},
      {"adaptive_avg_pool1d", lines, [](In x) { return at::adaptive_avg_pool1d(x, 5); }},
      {"adaptive_avg_pool2d", planes, [](In x) { return at::adaptive_avg_pool2d(x, {3, 4}); }},
      {"adaptive_avg_pool2d/global", planes, [](In x) { return at::adaptive_avg_pool2d(x, {1, 1}); }},
      {"adaptive_avg_pool3d", solids, [](In x) { return at::adaptive_avg_pool3d(x, {2, 3, 3}); }},
      {"adaptive_max_pool1d", lines, [](In x) { return at::adaptive_max_pool1d(x, 5); }},
      {"adaptive_max_pool2d", planes, [](In x) { return at::adaptive_max_pool2d(x, {3, 4}); }},
      {"adaptive_max_pool3d", solids, [](In x) { return at::adaptive_max_pool3d(x, {2, 3, 3}); }},
      {"fractional_max_pool2d",
       both({{f({2, 4, 8, 6}), f({2, 4, 2}).in(0, 1).constant()},
             {f({2, 4, 8, 6}).t(), f({2, 4, 2}).in(0, 1).constant()}}),
       [](In x, In samples) { return at::fractional_max_pool2d(x, {2, 2}, {4, 3}, samples); }},
      {"fractional_max_pool3d", both({{f({2, 4, 4, 6, 4}), f({2, 4, 3}).in(0, 1).constant()}}),
       [](In x, In samples) { return at::fractional_max_pool3d(x, {2, 2, 2}, {2, 3, 2}, samples); }},
      {"max_unpool2d", batches,
       [](In x) {
         auto [pooled, where] = at::max_pool2d_with_indices(x, 2);
         return at::max_unpool2d(pooled, where, x.sizes().slice(x.dim() - 2));
       }},
      {"max_unpool3d", both({{f({2, 4, 4, 6, 4})}, {f({4, 4, 6, 4})}}),
       [](In x) {
         auto [pooled, where] = at::max_pool3d_with_indices(x, 2);
         return at::max_unpool3d(pooled, where, x.sizes().slice(x.dim() - 3), {2, 2, 2}, {0, 0, 0});
       }},
  };
}

}  // namespace tandem::sweep
