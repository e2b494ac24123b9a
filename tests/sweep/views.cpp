// Operators whose results share memory with their input, and their copying twins.
#include "sweep.h"

#include <ATen/ATen.h>

namespace tandem::sweep {

Rows view_rows() {
  const Samples any = unary(), rows = along(), planes = matrices();
  const Samples dense = both({{f({4, 6})}, {f({24})}, {f({2, 3, 4})}, {f({0, 4})}});
  const Samples ones =
      both({{f({1, 3, 1, 2})}, {f({3, 1}).t()}, {f({1})}, {f({3, 2})}, {f({0, 1})}, {f({1, 4}).sliced()}});
  const Samples cubes =
      both({{f({4, 4, 4})}, {f({4, 4, 4}).t()}, {f({4, 4, 4}).sliced()}, {f({4, 4, 4}).expanded()}});
  const Samples shaped_alike = both({{f({4, 6}), f({2, 12})}, {f({4, 6}), f({24})}, {f({0, 3}), f({3, 0})}});
  return {
      {"alias", any, [](In x) { return at::alias(x); }},
      {"view", dense, [](In x) { return x.view({-1, 2, 2}); }},
      {"view_as", shaped_alike, [](In x, In y) { return x.view_as(y) * y; }},
      {"_unsafe_view", dense, [](In x) { return at::_unsafe_view(x, {x.numel()}); }},
      {"reshape", cubes, [](In x) { return at::reshape(x, {8, 2, -1}); }},
      {"reshape/flat", any, [](In x) { return at::reshape(x, {x.numel()}); }},
      {"reshape_as", shaped_alike, [](In x, In y) { return x.reshape_as(y) * y; }},
      {"_reshape_alias", dense, [](In x) { return at::_reshape_alias(x, {x.numel()}, {1}); }},
      {"flatten", any, [](In x) { return at::flatten(x); }},
      {"ravel", any, [](In x) { return at::ravel(x); }},
      {"unflatten", both({{f({4, 6})}, {f({6, 4}).t()}, {f({3, 6}).sliced()}}),
       [](In x) { return at::unflatten(x, 1, {2, -1}); }},
      {"expand", both({{f({1, 4})}, {f({4})}, {f({})}, {f({1, 4}).t()}, {f({1, 4}).sliced()}}),
       [](In x) { return x.expand({3, 4}); }},
      {"expand_as", both({{f({1, 4}), f({3, 4})}, {f({4}), f({0, 4})}, {f({}), f({2, 3}).t()}}),
       [](In x, In y) { return x.expand_as(y) + y; }},
      {"broadcast_to", both({{f({1, 4})}, {f({4})}, {f({})}}),
       [](In x) { return at::broadcast_to(x, {2, 3, 4}); }},
      {"permute", cubes, [](In x) { return at::permute(x, {2, 0, 1}); }},
      {"transpose", planes, [](In x) { return at::transpose(x, 0, -1); }},
      {"t", both({{f({5, 7})}, {f({4})}, {f({})}, {f({4, 6}).t()}, {f({0, 2})}}),
       [](In x) { return at::t(x); }},
      {"swapaxes", planes, [](In x) { return at::swapaxes(x, 0, 1); }},
      {"swapdims", planes, [](In x) { return at::swapdims(x, -1, 0); }},
      {"movedim", cubes, [](In x) { return at::movedim(x, 0, 2); }},
      {"moveaxis", cubes, [](In x) { return at::moveaxis(x, {0, 1}, {1, 2}); }},
      {"mT", planes, [](In x) { return x.mT(); }},
      {"numpy_T", planes, [](In x) { return x.numpy_T(); }},
      {"unsqueeze", any, [](In x) { return at::unsqueeze(x, -1); }},
      {"squeeze", ones, [](In x) { return at::squeeze(x); }},
      {"squeeze/dim", ones, [](In x) { return at::squeeze(x, 0); }},
      {"squeeze/dims", ones, [](In x) { return at::squeeze(x, at::IntArrayRef({0, -1})); }},
      {"select", cubes, [](In x) { return at::select(x, 1, 2); }},
      {"select/empty_throws", rows, [](In x) { return at::select(x, 0, -1); }},
      {"slice", rows, [](In x) { return at::slice(x, -1, 1, 100, 2); }},
      {"narrow", cubes, [](In x) { return at::narrow(x, 2, 1, 2); }},
      {"diagonal", planes, [](In x) { return at::diagonal(x, 1, -2, -1); }},
      {"split", rows, [](In x) { return at::split(x, 2, -1); }},
      {"split_with_sizes", cubes, [](In x) { return at::split_with_sizes(x, {1, 3}, 1); }},
      {"chunk", rows, [](In x) { return at::chunk(x, 3, -1); }},
      {"tensor_split", rows, [](In x) { return at::tensor_split(x, 3, 0); }},
      {"tensor_split/indices", planes, [](In x) { return at::tensor_split(x, at::IntArrayRef({1, 2}), -1); }},
      {"hsplit", cubes, [](In x) { return at::hsplit(x, 2); }},
      {"vsplit", cubes, [](In x) { return at::vsplit(x, 2); }},
      {"dsplit", cubes, [](In x) { return at::dsplit(x, {1, 2}); }},
      {"unbind", cubes, [](In x) { return at::unbind(x, 1); }},
      {"unsafe_split", rows, [](In x) { return at::unsafe_split(x, 2, 0); }},
      {"unsafe_split_with_sizes", cubes, [](In x) { return at::unsafe_split_with_sizes(x, {1, 3}, 0); }},
      {"unsafe_chunk", rows, [](In x) { return at::unsafe_chunk(x, 2, 0); }},
      {"unfold", cubes, [](In x) { return x.unfold(1, 3, 1); }},
      {"as_strided", both({{f({4, 6})}, {f({24})}}),
       [](In x) { return at::as_strided(x, {3, 4}, {5, 2}, 1); }},
      {"as_strided/overlap", both({{f({4, 6})}, {f({24})}}),
       [](In x) { return at::as_strided(x, {3, 4}, {2, 1}); }},
      {"atleast_1d", any, [](In x) { return at::atleast_1d(x); }},
      {"atleast_2d", any, [](In x) { return at::atleast_2d(x); }},
      {"atleast_3d", any, [](In x) { return at::atleast_3d(x); }},
      {"detach/kept", any, [](In x) { return Tensors{x.detach(), x * x.detach()}; }},
      {"contiguous", any, [](In x) { return x.contiguous() * 2; }},
      {"contiguous/channels_last", images(),
       [](In x) { return x.dim() == 4 ? x.contiguous(at::MemoryFormat::ChannelsLast) : x.contiguous(); }},
      {"clone", any, [](In x) { return at::clone(x); }},
      {"clone/contiguous", any, [](In x) { return at::clone(x, at::MemoryFormat::Contiguous); }},
      {"to", any, [](In x) { return x.to(at::kDouble); }},
      {"to/half", any, [](In x) { return x.to(at::kHalf); }},
      {"to/copy", any, [](In x) { return x.to(x.scalar_type(), false, true); }},
      {"_to_copy", any, [](In x) { return at::_to_copy(x, at::kBFloat16); }},
      {"type_as", binary(), [](In x, In y) { return x.type_as(y); }},
      {"view_copy", dense, [](In x) { return at::view_copy(x, {-1, 2, 2}); }},
      {"expand_copy", both({{f({1, 4})}, {f({4})}, {f({})}}),
       [](In x) { return at::expand_copy(x, {3, 4}); }},
      {"permute_copy", cubes, [](In x) { return at::permute_copy(x, {2, 0, 1}); }},
      {"transpose_copy", planes, [](In x) { return at::transpose_copy(x, 0, 1); }},
      {"select_copy", cubes, [](In x) { return at::select_copy(x, 1, 2); }},
      {"slice_copy", rows, [](In x) { return at::slice_copy(x, 0, 1, 4, 2); }},
      {"squeeze_copy", ones, [](In x) { return at::squeeze_copy(x); }},
      {"unsqueeze_copy", any, [](In x) { return at::unsqueeze_copy(x, 0); }},
      {"diagonal_copy", planes, [](In x) { return at::diagonal_copy(x); }},
      {"as_strided_copy", dense, [](In x) { return at::as_strided_copy(x, {x.numel()}, {1}); }},
      {"unbind_copy", cubes, [](In x) { return at::unbind_copy(x, 0); }},
      {"split_copy", rows, [](In x) { return at::split_copy(x, 2, -1); }},
      {"narrow_copy", cubes, [](In x) { return at::narrow_copy(x, 2, 1, 2).detach() * x.sum(); }},
      {"view/of_view", cubes,
       [](In x) { return Tensors{x.transpose(0, 1).select(1, 0), x.view_as(x)[0].t(), x}; }},
  };
}

}  // namespace tandem::sweep
