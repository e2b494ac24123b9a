/// What layer, group and batch norm have in common; they differ in the dimensions that they normalise over.
#pragma once

#include "passes/loop_formulas.h"

namespace tandem {

/// How a tensor is spread along some dimensions, which all keep with one element.
struct Spread {
  Value mean, differences, variance;
};

/// The mean first and then that of squared differences from it: nothing cancels.
inline Spread spread_of(LoopFormula& f, Value x, const Axes& axes) {
  Value mean = f.mean(x, axes), differences = f.sub(x, mean);
  return {mean, differences, f.mean(f.square(differences), axes)};
}

/// One over the standard deviation.
inline Value inverse_deviation(LoopFormula& f, Value variance, double epsilon) {
  return f.apply("aten::rsqrt", f.add(variance, epsilon));
}

/// What a gradient says along the dimensions that were normalised over, which all keep with one element.
struct GradientSums {
  Value plain, along;  ///< of the gradient, and of its products with what was normalised
};

/// The gradient of x, given that of normalised x and its sums over `count` elements: what is left of it
/// beside its mean and its part along normalised x, neither of which x can change; scaled by `inverse`.
inline Value normalisation_backward(LoopFormula& f, Value gradient, Value normalised, Value inverse,
                                    const GradientSums& sums, int64_t count) {
  Value mean = f.div(sums.plain, double(count)), along = f.div(sums.along, double(count));
  return f.mul(f.sub(f.sub(gradient, mean), f.mul(normalised, along)), inverse);
}

}  // namespace tandem
