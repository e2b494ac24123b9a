// Pointwise functions of two and three tensors.
#include "sweep.h"

#include <ATen/ATen.h>

namespace tandem::sweep {

Rows binary_rows() {
  const Samples any = binary(), positive = binary(0.2, 3), equal = pairs();
  const Samples complex = both({{c({5, 7}), c({5, 7})},
                                {c({3, 4}), c({4})},
                                {c({3}), f({3})},
                                {f({2, 3}), c({3})},
                                {c({}), c({})},
                                {c({0, 2}), c({2})},
                                {c({4, 6}).t(), c({4, 6})}});
  const Samples chosen = both({{mask({7, 9}), f({7, 9}), f({7, 9})},
                               {mask({3, 1}), f({3, 4}), f({4})},
                               {mask({}), f({5}), f({})},
                               {mask({0, 3}), f({3}), f({3})},
                               {mask({4, 6}).t(), f({4, 6}).sliced(), f({4, 6}).expanded()}});
  const Samples thirds = ternary(0.2, 2);
  const Samples vectors =
      both({{f({3, 5}), f({3, 5})}, {f({2, 1, 4}), f({3, 4})}, {f({0, 3}), f({0, 3})}, {f({5, 3}).t(), f({5, 3}).sliced()}, {f({4}), f({4})}});
  return {
      {"add", any, [](In x, In y) { return at::add(x, y); }},
      {"add/alpha", any, [](In x, In y) { return at::add(x, y, 0.3); }},
      {"add/scalar", unary(), [](In x) { return at::add(x, 1.5, 2); }},
      {"add/complex", complex, [](In x, In y) { return at::add(x, y); }},
      {"sub", any, [](In x, In y) { return at::sub(x, y); }},
      {"sub/alpha", any, [](In x, In y) { return at::sub(x, y, 1.7); }},
      {"subtract", any, [](In x, In y) { return at::subtract(x, y); }},
      {"rsub", any, [](In x, In y) { return at::rsub(x, y); }},
      {"rsub/scalar", unary(), [](In x) { return at::rsub(x, 2.5); }},
      {"mul", any, [](In x, In y) { return at::mul(x, y); }},
      {"mul/scalar", unary(), [](In x) { return x * 2.5; }},
      {"mul/complex", complex, [](In x, In y) { return at::mul(x, y); }},
      {"mul/itself", unary(), [](In x) { return at::mul(x, x); }},
      {"multiply", any, [](In x, In y) { return at::multiply(x, y); }},
      {"div", positive, [](In x, In y) { return at::div(x, y); }},
      {"div/scalar", unary(), [](In x) { return at::div(x, 3); }},
      {"div/trunc", positive, [](In x, In y) { return at::div(x, y, "trunc"); }},
      {"div/floor", positive, [](In x, In y) { return at::div(x, y, "floor"); }},
      {"div/complex", complex, [](In x, In y) { return at::div(x, y); }},
      {"divide", positive, [](In x, In y) { return at::divide(x, y); }},
      {"true_divide", positive, [](In x, In y) { return at::true_divide(x, y); }},
      {"floor_divide", positive, [](In x, In y) { return at::floor_divide(x.detach(), y.detach()) * x; }},
      {"pow", positive, [](In x, In y) { return at::pow(x, y); }},
      {"float_power", positive, [](In x, In y) { return at::float_power(x, y); }},
      {"atan2", any, [](In x, In y) { return at::atan2(x, y); }},
      {"arctan2", any, [](In x, In y) { return at::arctan2(x, y); }},
      {"maximum", any, [](In x, In y) { return at::maximum(x, y); }},
      {"minimum", any, [](In x, In y) { return at::minimum(x, y); }},
      {"max/other", any, [](In x, In y) { return at::max(x, y); }},
      {"min/other", any, [](In x, In y) { return at::min(x, y); }},
      {"fmax", any, [](In x, In y) { return at::fmax(x, y); }},
      {"fmin", any, [](In x, In y) { return at::fmin(x, y); }},
      {"fmod", positive, [](In x, In y) { return at::fmod(x, y); }},
      {"fmod/scalar", unary(), [](In x) { return at::fmod(x, 0.7); }},
      {"remainder", positive, [](In x, In y) { return at::remainder(x, y); }},
      {"remainder/scalar", unary(), [](In x) { return at::remainder(x, 0.7); }},
      {"hypot", any, [](In x, In y) { return at::hypot(x, y); }},
      {"logaddexp", any, [](In x, In y) { return at::logaddexp(x, y); }},
      {"logaddexp2", any, [](In x, In y) { return at::logaddexp2(x, y); }},
      {"copysign", any, [](In x, In y) { return at::copysign(x, y); }},
      {"copysign/scalar", unary(), [](In x) { return at::copysign(x, -1.0); }},
      {"ldexp", any, [](In x, In y) { return at::ldexp(x, y); }},
      {"xlogy", positive, [](In x, In y) { return at::xlogy(x, y); }},
      {"xlogy/scalar_self", unary(0.2, 3), [](In x) { return at::xlogy(1.5, x); }},
      {"special_xlogy", positive, [](In x, In y) { return at::special_xlogy(x, y); }},
      {"special_xlog1py", positive, [](In x, In y) { return at::special_xlog1py(x, y); }},
      {"special_zeta", binary(1.5, 4), [](In x, In y) { return at::special_zeta(x.detach(), y); }},
      {"igamma", positive, [](In x, In y) { return at::igamma(x.detach(), y); }},
      {"igammac", positive, [](In x, In y) { return at::igammac(x.detach(), y); }},
      {"heaviside", any, [](In x, In y) { return at::heaviside(x.detach(), y.detach()) * x; }},
      {"lerp", thirds, [](In x, In y, In weight) { return at::lerp(x, y, weight); }},
      {"lerp/scalar", equal, [](In x, In y) { return at::lerp(x, y, 0.3); }},
      {"addcmul", thirds, [](In x, In y, In z) { return at::addcmul(x, y, z, 0.7); }},
      {"addcdiv", thirds, [](In x, In y, In z) { return at::addcdiv(x, y, z, 0.7); }},
      {"where", chosen, [](In m, In x, In y) { return at::where(m, x, y); }},
      {"where/scalar", chosen, [](In m, In x, In y) { return at::where(m, x, 2.0) * y; }},
      {"where/comparison", any, [](In x, In y) { return at::where(x > y, x.sin(), y.cos()); }},
      {"dist", any, [](In x, In y) { return at::dist(x, y); }},
      {"dist/p", any, [](In x, In y) { return at::dist(x, y, 1.5); }},
      {"polar", equal, [](In x, In y) { return at::polar(x, y); }},
      {"complex", equal, [](In x, In y) { return at::complex(x, y); }},
      {"cosine_similarity", vectors, [](In x, In y) { return at::cosine_similarity(x, y, -1); }},
      {"pairwise_distance", vectors, [](In x, In y) { return at::pairwise_distance(x, y); }},
      {"broadcast_tensors", any,
       [](In x, In y) {
         return at::broadcast_tensors({x, y});
       }},
      {"_foreach_add", any,
       [](In x, In y) {
         return at::_foreach_add({x, y}, {x, x}, 0.5);
       }},
      {"_foreach_mul", equal,
       [](In x, In y) {
         return at::_foreach_mul({x, y}, {y, y});
       }},
      {"_foreach_exp", equal,
       [](In x, In y) {
         return at::_foreach_exp({x, y});
       }},
      {"_foreach_addcmul", equal,
       [](In x, In y) {
         return at::_foreach_addcmul({x, y}, {y, x}, {x, x}, 0.5);
       }},
      {"_foreach_norm", equal,
       [](In x, In y) {
         return at::_foreach_norm({x, y});
       }},
      {"_foreach_lerp", equal,
       [](In x, In y) {
         return at::_foreach_lerp({x, y}, {y, x}, 0.25);
       }},
  };
}

}  // namespace tandem::sweep
