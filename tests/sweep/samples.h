/// Inputs of the operator sweep: described as data, so that the same geometry can be filled with new numbers
/// again and again.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace tandem::sweep {

using Tensors = std::vector<at::Tensor>;
using Sizes = std::vector<int64_t>;

enum class Fill : uint8_t {
  Uniform,
  Integer,
  Boolean,
  Holed,
  Sorted,
  PositiveDefinite,
  WellConditioned,
  None
};
enum class Layout : uint8_t { Contiguous, Transposed, Sliced, Expanded, ChannelsLast };

/// One input: what it looks like and what fills it. The members that return a Spec give a changed copy.
struct Spec {
  Sizes sizes;
  at::ScalarType dtype = at::kFloat;
  Fill fill = Fill::Uniform;
  Layout layout = Layout::Contiguous;
  double low = -2, high = 2;
  bool grad = true;  ///< asked for where the dtype allows it

  /// the last two dimensions swapped in memory
  Spec t() const { return with_layout(Layout::Transposed); }
  /// every second element of a larger tensor, from the second on
  Spec sliced() const { return with_layout(Layout::Sliced); }
  Spec expanded() const { return with_layout(Layout::Expanded); }  ///< stride 0 in the first dimension
  Spec channels_last() const { return with_layout(Layout::ChannelsLast); }
  Spec f64() const;       ///< in double precision, where it is float or complex
  Spec constant() const;  ///< without a gradient
  Spec in(double from, double to) const;

 private:
  Spec with_layout(Layout other) const;
};

using Sample = std::vector<Spec>;  ///< the inputs of one call
using Samples = std::vector<Sample>;

Spec f(Sizes sizes);                      ///< float, uniform in -2 ... 2
Spec c(Sizes sizes);                      ///< complex
Spec index(Sizes sizes, int64_t below);   ///< int64 in 0 ... below - 1
Spec sorted(Sizes sizes, int64_t below);  ///< the same, ascending, the first 0
Spec mask(Sizes sizes);
Spec holed(Sizes sizes);   ///< float, every third element NaN
Spec spd(Sizes sizes);     ///< symmetric positive definite matrices
Spec square(Sizes sizes);  ///< matrices far from singular
Spec none();               ///< an undefined tensor

std::string to_string(const Sample& sample);

/// Tensors for a sample, drawn from libtorch's generator; float ones are leaves that require grad.
Tensors make(const Sample& sample);

/// The samples, and all of them in double precision.
Samples both(const Samples& samples);
Samples operator+(Samples left, const Samples& right);
/// Every sample with the same further inputs.
Samples with(const Samples& samples, const Sample& more);

/// One tensor of every shape and layout, in [low, high].
Samples unary(double low = -2, double high = 2);
/// Two tensors: equal shapes, broadcast either way, 0-dim, empty, every layout, mixed dtypes.
Samples binary(double low = -2, double high = 2);
/// Three tensors that broadcast against each other.
Samples ternary(double low = -2, double high = 2);
/// Two tensors of equal shape and dtype.
Samples pairs(double low = -2, double high = 2);
/// One tensor of at least one dimension; only the first ones of the last two are empty.
Samples along();
/// One tensor of at least two dimensions, of every layout.
Samples matrices();
/// One batch of symmetric positive definite, or of well-conditioned, matrices.
Samples spd_matrices();
Samples square_matrices();
/// One (N, C, L), (N, C, H, W) or (N, C, D, H, W) tensor; also unbatched, without a batch element, transposed
/// and channels-last.
Samples signals();
Samples images();
Samples volumes();

}  // namespace tandem::sweep
