// Convolutions of one, two and three dimensions.
#include "sweep.h"

#include <ATen/ATen.h>

namespace tandem::sweep {

Rows convolution_rows() {
  const Samples one = both({{f({2, 4, 12}), f({6, 4, 3}), f({6})},
                            {f({4, 12}), f({6, 4, 3}), f({6})},
                            {f({2, 4, 12}).t(), f({6, 4, 3}).t(), f({6}).sliced()},
                            {f({2, 4, 12}).sliced(), f({6, 4, 3}), none()},
                            {f({0, 4, 12}), f({6, 4, 3}), f({6})},
                            {f({2, 4, 12}).constant(), f({6, 4, 3}), f({6})}});
  const Samples two = both({{f({2, 4, 8, 6}), f({6, 4, 3, 2}), f({6})},
                            {f({4, 8, 6}), f({6, 4, 3, 2}), f({6})},
                            {f({2, 4, 8, 6}).channels_last(), f({6, 4, 3, 2}).channels_last(), f({6})},
                            {f({2, 4, 8, 6}).t(), f({6, 4, 3, 2}).t(), f({6})},
                            {f({2, 4, 8, 6}), f({6, 4, 3, 2}), none()},
                            {f({0, 4, 8, 6}), f({6, 4, 3, 2}), f({6})},
                            {f({2, 4, 8, 6}).expanded(), f({6, 4, 3, 2}).constant(), f({6})}});
  const Samples three = both({{f({2, 2, 4, 6, 4}), f({4, 2, 2, 3, 2}), f({4})},
                              {f({2, 4, 6, 4}), f({4, 2, 2, 3, 2}), f({4})},
                              {f({2, 2, 4, 6, 4}).channels_last(), f({4, 2, 2, 3, 2}), f({4})},
                              {f({2, 2, 4, 6, 4}).t(), f({4, 2, 2, 3, 2}), none()}});
  const Samples grouped = both({{f({2, 4, 8, 6}), f({6, 2, 3, 2}), f({6})},
                                {f({2, 4, 8, 6}).channels_last(), f({6, 2, 3, 2}), f({6})},
                                {f({2, 4, 8, 6}).t(), f({6, 2, 3, 2}), none()}});
  const Samples depthwise = both({{f({2, 4, 8, 6}), f({4, 1, 3, 3}), f({4})},
                                  {f({2, 4, 8, 6}).channels_last(), f({4, 1, 3, 3}), none()}});
  const Samples back_one = both({{f({2, 4, 6}), f({4, 3, 3}), f({3})},
                                 {f({4, 6}), f({4, 3, 3}), f({3})},
                                 {f({2, 4, 6}).t(), f({4, 3, 3}), none()}});
  const Samples back_two = both({{f({2, 4, 5, 6}), f({4, 3, 3, 2}), f({3})},
                                 {f({4, 5, 6}), f({4, 3, 3, 2}), f({3})},
                                 {f({2, 4, 5, 6}).channels_last(), f({4, 3, 3, 2}), f({3})},
                                 {f({2, 4, 5, 6}).t(), f({4, 3, 3, 2}).t(), none()}});
  const Samples back_three = both({{f({2, 4, 3, 4, 3}), f({4, 2, 2, 3, 2}), f({2})},
                                   {f({2, 4, 3, 4, 3}).channels_last(), f({4, 2, 2, 3, 2}), none()}});
  return {
      {"conv1d", one, [](In x, In w, In b) { return at::conv1d(x, w, b); }},
      {"conv1d/strided", one, [](In x, In w, In b) { return at::conv1d(x, w, b, 2, 1, 2); }},
      {"conv1d/same", one, [](In x, In w, In b) { return at::conv1d(x, w, b, 1, "same"); }},
      {"conv2d", two, [](In x, In w, In b) { return at::conv2d(x, w, b); }},
      {"conv2d/strided", two, [](In x, In w, In b) { return at::conv2d(x, w, b, {2, 1}, {1, 0}); }},
      {"conv2d/dilated", two, [](In x, In w, In b) { return at::conv2d(x, w, b, 1, 1, {2, 1}); }},
      {"conv2d/grouped", grouped, [](In x, In w, In b) { return at::conv2d(x, w, b, 1, 1, 1, 2); }},
      {"conv2d/depthwise", depthwise, [](In x, In w, In b) { return at::conv2d(x, w, b, 1, 1, 1, 4); }},
      {"conv2d/valid", two, [](In x, In w, In b) { return at::conv2d(x, w, b, 1, "valid"); }},
      {"conv3d", three, [](In x, In w, In b) { return at::conv3d(x, w, b); }},
      {"conv3d/strided", three, [](In x, In w, In b) { return at::conv3d(x, w, b, {1, 2, 1}, 1); }},
      {"conv_transpose1d", back_one, [](In x, In w, In b) { return at::conv_transpose1d(x, w, b, 2, 1, 1); }},
      {"conv_transpose2d", back_two, [](In x, In w, In b) { return at::conv_transpose2d(x, w, b); }},
      {"conv_transpose2d/strided", back_two,
       [](In x, In w, In b) { return at::conv_transpose2d(x, w, b, 2, 1, 1); }},
      {"conv_transpose3d", back_three,
       [](In x, In w, In b) { return at::conv_transpose3d(x, w, b, {1, 2, 1}); }},
      {"convolution", two,
       [](In x, In w, In b) {
         return at::convolution(x.dim() == 4 ? x : x.unsqueeze(0), w, b, {1, 1}, {1, 1}, {1, 1}, false,
                                {0, 0}, 1);
       }},
      {"conv_tbc", both({{f({7, 2, 4}), f({3, 4, 5}), f({5})}, {f({7, 2, 4}).t(), f({3, 4, 5}), f({5})}}),
       [](In x, In w, In b) { return at::conv_tbc(x, w, b, 1); }},
      {"slow_conv3d", both({{f({2, 2, 4, 6, 4}), f({4, 2, 2, 3, 2}), f({4})}}),
       [](In x, In w, In b) { return at::slow_conv3d(x, w, {2, 3, 2}, b, {1, 1, 1}, {1, 1, 1}); }},
  };
}

}  // namespace tandem::sweep
