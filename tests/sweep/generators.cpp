// The sample lists that many operators share.
#include "samples.h"

namespace tandem::sweep {

namespace {

Samples in_range(Samples samples, double low, double high) {
  for (Sample& sample : samples) {
    for (Spec& spec : sample) {
      spec.low = low;
      spec.high = high;
    }
  }
  return samples;
}

}  // namespace

Samples unary(double low, double high) {
  return in_range({{f({7, 9})},
                   {f({})},
                   {f({0, 3})},
                   {f({5, 7}).t()},
                   {f({3, 11}).sliced()},
                   {f({4, 5}).expanded()},
                   {f({2, 3, 4}).f64()},
                   {f({}).f64()},
                   {f({5, 3}).t().f64()},
                   {f({19}).sliced().f64()}},
                  low, high);
}

Samples binary(double low, double high) {
  Samples samples = both({{f({7, 9}), f({7, 9})},
                          {f({3, 4}), f({4})},
                          {f({5}), f({3, 1})},
                          {f({2, 3}), f({})},
                          {f({}), f({})},
                          {f({0, 3}), f({3})},
                          {f({5, 7}).t(), f({5, 7})},
                          {f({4, 5}).sliced(), f({4, 5}).expanded()}});
  return in_range(samples + Samples{{f({3, 4}), f({3, 4}).f64()},
                                    {f({3}).f64(), f({})},
                                    {f({3, 4}).constant(), f({4})},
                                    {f({3, 4}), f({4}).constant()}},
                  low, high);
}

Samples ternary(double low, double high) {
  return in_range(both({{f({7, 9}), f({7, 9}), f({7, 9})},
                        {f({3, 4}), f({4}), f({3, 1})},
                        {f({}), f({5}), f({})},
                        {f({0, 3}), f({3}), f({1, 3})},
                        {f({4, 6}).t(), f({4, 6}).sliced(), f({4, 6}).expanded()},
                        {f({}), f({}), f({})}}),
                  low, high);
}

Samples pairs(double low, double high) {
  return in_range(both({{f({7, 9}), f({7, 9})},
                        {f({}), f({})},
                        {f({0, 3}), f({0, 3})},
                        {f({5, 7}).t(), f({5, 7})},
                        {f({4, 5}).sliced(), f({4, 5}).expanded()}}),
                  low, high);
}

Samples along() {
  return both({{f({5, 7})},
               {f({9})},
               {f({0, 3})},
               {f({2, 3, 4})},
               {f({4, 6}).t()},
               {f({3, 5}).sliced()},
               {f({4, 5}).expanded()}});
}

Samples matrices() {
  return both({{f({5, 7})},
               {f({0, 3})},
               {f({2, 3, 4})},
               {f({4, 6}).t()},
               {f({3, 5}).sliced()},
               {f({4, 5}).expanded()}});
}

Samples spd_matrices() {
  return both({{spd({3, 3})}, {spd({2, 4, 4})}, {spd({1, 1})}, {spd({0, 2, 2})}, {spd({3, 3}).t()}});
}

Samples square_matrices() {
  return both({{square({3, 3})},
               {square({2, 4, 4})},
               {square({1, 1})},
               {square({0, 2, 2})},
               {square({3, 3}).t()},
               {square({2, 3, 3}).expanded()}});
}

Samples signals() {
  return both({{f({2, 4, 12})},
               {f({4, 12})},
               {f({2, 4, 12}).t()},
               {f({2, 4, 12}).sliced()},
               {f({0, 4, 12})},
               {f({3, 4, 12}).expanded()}});
}

Samples images() {
  return both({{f({2, 4, 8, 6})},
               {f({4, 8, 6})},
               {f({2, 4, 8, 6}).channels_last()},
               {f({2, 4, 8, 6}).t()},
               {f({2, 4, 8, 6}).sliced()},
               {f({0, 4, 8, 6})},
               {f({2, 4, 8, 6}).expanded()}});
}

Samples volumes() {
  return both({{f({2, 4, 4, 6, 4})},
               {f({4, 4, 6, 4})},
               {f({2, 4, 4, 6, 4}).channels_last()},
               {f({2, 4, 4, 6, 4}).t()},
               {f({0, 4, 4, 6, 4})}});
}

}  // namespace tandem::sweep
