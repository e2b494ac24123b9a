// Joining, repeating, rearranging and padding.
#include "sweep.h"

#include <ATen/ATen.h>

namespace tandem::sweep {

Rows shape_rows() {
  const Samples any = unary(), rows = along(), planes = matrices(), equal = pairs();
  const Samples joined = both({{f({2, 3}), f({4, 3})},
                               {f({5}), f({2})},
                               {f({0}), f({3})},
                               {f({2, 3}).t(), f({4, 3}).sliced()},
                               {f({0, 3}), f({2, 3})},
                               {f({2, 3}).expanded(), f({2, 3}).t()}});
  const Samples squares = both({{f({4, 4})}, {f({4, 4}).t()}, {f({3, 3}).sliced()}});
  return {
      {"cat", joined, [](In x, In y) { return at::cat({x, y}); }},
      {"cat/last", equal, [](In x, In y) { return x.dim() ? at::cat({x, y, x}, -1) : at::stack({x, y}); }},
      {"cat/dtypes", both({{f({2, 3}), f({4, 3}).f64()}}), [](In x, In y) { return at::cat({x, y}); }},
      {"cat/channels_last", both({{f({2, 3, 4, 5}).channels_last(), f({2, 2, 4, 5}).channels_last()}}),
       [](In x, In y) { return at::cat({x, y}, 1); }},
      {"concat", joined, [](In x, In y) { return at::concat({x, y}); }},
      {"concatenate", joined, [](In x, In y) { return at::concatenate({x, y}); }},
      {"stack", equal, [](In x, In y) { return at::stack({x, y}, -1); }},
      {"hstack", equal, [](In x, In y) { return at::hstack({x, y}); }},
      {"vstack", equal, [](In x, In y) { return at::vstack({x, y}); }},
      {"row_stack", equal, [](In x, In y) { return at::row_stack({x, y}); }},
      {"dstack", equal, [](In x, In y) { return at::dstack({x, y}); }},
      {"column_stack", equal, [](In x, In y) { return at::column_stack({x, y}); }},
      {"block_diag", joined, [](In x, In y) { return at::block_diag({x, y}); }},
      {"cartesian_prod", both({{f({3}), f({4})}, {f({3}).sliced(), f({0})}}),
       [](In x, In y) { return at::cartesian_prod({x, y}); }},
      {"meshgrid", both({{f({3}), f({4})}, {f({3}).sliced(), f({})}}),
       [](In x, In y) { return at::meshgrid({x, y}, "ij"); }},
      {"pad_sequence", both({{f({3, 2}), f({5, 2})}, {f({3}), f({2}).sliced()}}),
       [](In x, In y) { return at::pad_sequence({x, y}, true, 0.5); }},
      {"repeat", any, [](In x) { return x.repeat({2, 1, 3}); }},
      {"tile", any, [](In x) { return at::tile(x, {2, 2}); }},
      {"repeat_interleave", any, [](In x) { return at::repeat_interleave(x, 3); }},
      {"repeat_interleave/dim", rows, [](In x) { return at::repeat_interleave(x, 2, 0); }},
      {"roll", rows, [](In x) { return at::roll(x, {2}, {-1}); }},
      {"roll/flat", any, [](In x) { return at::roll(x, 3); }},
      {"rot90", planes, [](In x) { return at::rot90(x, 1, {0, 1}); }},
      {"flip", rows, [](In x) { return at::flip(x, {0}); }},
      {"flip/all", planes, [](In x) { return at::flip(x, {0, -1}); }},
      {"fliplr", planes, [](In x) { return at::fliplr(x); }},
      {"flipud", rows, [](In x) { return at::flipud(x); }},
      {"tril", planes, [](In x) { return at::tril(x, 1); }},
      {"triu", planes, [](In x) { return at::triu(x, -1); }},
      {"diag", squares + both({{f({4})}, {f({3}).sliced()}}), [](In x) { return at::diag(x, 1); }},
      {"diag_embed", rows, [](In x) { return at::diag_embed(x, 1); }},
      {"diagflat", any, [](In x) { return at::diagflat(x); }},
      {"vander/throws", both({{f({4})}, {f({3}).sliced()}}), [](In x) { return at::vander(x); }},
      {"constant_pad_nd", rows, [](In x) { return at::constant_pad_nd(x, {1, 2}, 0.5); }},
      {"constant_pad_nd/crop", planes, [](In x) { return at::constant_pad_nd(x, {-1, 2, 1, 0}, -1); }},
      {"pad", planes, [](In x) { return at::pad(x, {1, 2}); }},
      {"pad/reflect", signals(), [](In x) { return at::pad(x, {1, 2}, "reflect"); }},
      {"pad/circular", signals(), [](In x) { return at::pad(x, {3, 2}, "circular"); }},
      {"reflection_pad1d", signals(), [](In x) { return at::reflection_pad1d(x, {2, 3}); }},
      {"reflection_pad2d", images(), [](In x) { return at::reflection_pad2d(x, {1, 2, 3, 1}); }},
      {"reflection_pad3d", volumes(), [](In x) { return at::reflection_pad3d(x, {1, 2, 2, 1, 1, 0}); }},
      {"replication_pad1d", signals(), [](In x) { return at::replication_pad1d(x, {2, 3}); }},
      {"replication_pad2d", images(), [](In x) { return at::replication_pad2d(x, {1, 2, 3, 1}); }},
      {"replication_pad3d", volumes(), [](In x) { return at::replication_pad3d(x, {1, 2, 2, 1, 1, 0}); }},
      {"pixel_shuffle", images(), [](In x) { return at::pixel_shuffle(x, 2); }},
      {"pixel_unshuffle", images(), [](In x) { return at::pixel_unshuffle(x, 2); }},
      {"channel_shuffle", images(), [](In x) { return at::channel_shuffle(x, 2); }},
      {"im2col", images(), [](In x) { return at::im2col(x, {3, 2}, {1, 1}, {1, 0}, {2, 1}); }},
      {"col2im", both({{f({2, 12, 20})}, {f({12, 20})}, {f({2, 12, 20}).t()}}),
       [](In x) { return at::col2im(x, {5, 6}, {2, 2}, {1, 1}, {0, 0}, {1, 1}); }},
      {"full_like/product", any,
       [](In x) { return at::full_like(x, 2.0) * x + at::ones_like(x) - at::zeros_like(x); }},
      {"arange/product", rows,
       [](In x) { return at::arange(x.size(-1), x.options().requires_grad(false)) * x; }},
  };
}

}  // namespace tandem::sweep
