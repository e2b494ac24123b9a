#include "passes/norm_formulas.h"

#include <ATen/TensorUtils.h>

namespace tandem {
namespace {

/// Those of the data that parameters are given for; the ones before them are the batch.
Axes normalised_axes(LoopFormula& f, Value x, size_t shape) {
  const int64_t rank = f.rank(x);
  return axes_between(rank - std::ssize(f.constant(shape).toIntVector()), rank);
}

std::vector<Value> layer_norm(LoopFormula& f) {
  Value x = f.tensor(0), weight = f.tensor(2), bias = f.tensor(3);
  const Axes axes = normalised_axes(f, x, 1);
  auto [mean, differences, variance] = spread_of(f, x, axes);
  Value inverse = inverse_deviation(f, variance, f.number(4));
  return {f.plus(f.times(f.mul(differences, inverse), weight), bias), mean, inverse};
}

std::vector<Value> layer_norm_backward(LoopFormula& f) {
  Value gradient = f.tensor(0), x = f.tensor(1), inverse = f.tensor(4), weight = f.tensor(5);
  const Axes axes = normalised_axes(f, x, 2), batch = axes_between(0, axes.front());
  Value normalised = f.mul(f.sub(x, f.tensor(3)), inverse);
  std::vector<Value> made;
  if (f.result(0)) {
    Value outer = f.times(gradient, weight);
    const GradientSums sums{f.sum(outer, axes), f.sum(f.mul(outer, normalised), axes)};
    made.push_back(normalisation_backward(f, outer, normalised, inverse, sums, f.extent(x, axes)));
  }
  if (Value wanted = f.result(1))
    made.push_back(f.as_sized(f.sum(f.mul(gradient, normalised), batch), wanted));
  if (Value wanted = f.result(2)) made.push_back(f.as_sized(f.sum(gradient, batch), wanted));
  return made;
}

/// The shapes that group norm goes through: [N, C, *] is [N, G, C/G, *], whatever the strides.
struct Groups {
  Axes whole, apart;
  Axes statistics;  ///< [N, G, 1, *]
  Axes parameters;  ///< [G, C/G, *]
  Axes in_group, in_channel;
  int64_t group_size;

  Groups(const Axes& sizes, int64_t groups) : whole(sizes), apart{sizes[0], groups, sizes[1] / groups} {
    apart.insert(apart.end(), sizes.begin() + 2, sizes.end());
    const int64_t rank = std::ssize(apart);
    in_group = axes_between(2, rank), in_channel = axes_between(3, rank);
    group_size = apart[2];
    for (int64_t axis : in_channel) group_size *= apart[axis];
    statistics = Axes(rank, 1), statistics[0] = apart[0], statistics[1] = groups;
    parameters = Axes(rank - 1, 1), parameters[0] = groups, parameters[1] = apart[2];
  }

  Value split(LoopFormula& f, Value v) const { return f.view(v, apart); }
  Value spread(LoopFormula& f, Value statistic) const { return f.view(statistic, statistics); }
  Value of_channels(LoopFormula& f, Value parameter) const {
    return parameter ? f.view(parameter, parameters) : Value();
  }
  /// None where groups and channels of `v` lie so that no view has them in one dimension.
  Value join(LoopFormula& f, Value v) const {
    const TensorMeta meta = f.meta(v);
    return at::detail::computeStride(meta.sizes, meta.strides, whole) ? f.view(v, whole) : Value();
  }
};

std::vector<Value> group_norm(LoopFormula& f) {
  const Groups groups(f.sizes(f.tensor(0)), f.constant(6).toInt());
  Value weight = groups.of_channels(f, f.tensor(1)), bias = groups.of_channels(f, f.tensor(2));
  auto [mean, differences, variance] = spread_of(f, groups.split(f, f.tensor(0)), groups.in_group);
  Value inverse = inverse_deviation(f, variance, f.number(7));
  Value joined = groups.join(f, f.plus(f.times(f.mul(differences, inverse), weight), bias));
  if (!joined) return {};
  return {joined, f.as_sized(mean, f.result(1)), f.as_sized(inverse, f.result(2))};
}

std::vector<Value> group_norm_backward(LoopFormula& f) {
  const Groups groups(f.sizes(f.tensor(1)), f.constant(8).toInt());
  Value gradient = groups.split(f, f.tensor(0)), x = groups.split(f, f.tensor(1));
  Value inverse = groups.spread(f, f.tensor(3)), weight = groups.of_channels(f, f.tensor(4));
  Value normalised = f.mul(f.sub(x, groups.spread(f, f.tensor(2))), inverse);
  // The data is folded once, to a number for each channel of a sample.
  const GradientSums sums{f.sum(gradient, groups.in_channel),
                          f.sum(f.mul(gradient, normalised), groups.in_channel)};
  std::vector<Value> made;
  if (f.result(0)) {
    const GradientSums of_groups{f.sum(f.times(sums.plain, weight), {2}),
                                 f.sum(f.times(sums.along, weight), {2})};
    made.push_back(groups.join(f, normalisation_backward(f, f.times(gradient, weight), normalised, inverse,
                                                         of_groups, groups.group_size)));
    if (!made.back()) return {};
  }
  if (Value wanted = f.result(1)) made.push_back(f.as_sized(f.sum(sums.along, {0}), wanted));
  if (Value wanted = f.result(2)) made.push_back(f.as_sized(f.sum(sums.plain, {0}), wanted));
  return made;
}

constexpr LoopRow norm_table[] = {
    {"aten::native_layer_norm", layer_norm},
    {"aten::native_layer_norm_backward", layer_norm_backward},
    {"aten::native_group_norm", group_norm},
    {"aten::native_group_norm_backward", group_norm_backward},
};

}  // namespace

std::span<const LoopRow> norm_rows() { return norm_table; }

}  // namespace tandem
