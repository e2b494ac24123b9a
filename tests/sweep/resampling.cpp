// Images made larger, smaller, and sampled along grids.
#include "sweep.h"

#include <ATen/ATen.h>

namespace tandem::sweep {

Rows resampling_rows() {
  const Samples lines = both({{f({2, 3, 8})},
                              {f({2, 3, 8}).t()},
                              {f({2, 3, 8}).sliced()},
                              {f({0, 3, 8})},
                              {f({2, 3, 8}).expanded()}});
  const Samples planes = both({{f({2, 3, 6, 5})},
                               {f({2, 3, 6, 5}).channels_last()},
                               {f({2, 3, 6, 5}).t()},
                               {f({2, 3, 6, 5}).sliced()},
                               {f({0, 3, 6, 5})},
                               {f({2, 5, 6, 5}).expanded()}});
  const Samples solids = both({{f({2, 3, 4, 5, 3})},
                               {f({2, 3, 4, 5, 3}).channels_last()},
                               {f({2, 3, 4, 5, 3}).t()},
                               {f({0, 3, 4, 5, 3})}});
  const Samples grids = both({{f({2, 3, 6, 5}), f({2, 4, 7, 2}).in(-1.2, 1.2)},
                              {f({2, 3, 6, 5}).channels_last(), f({2, 4, 7, 2}).in(-1.2, 1.2)},
                              {f({2, 3, 6, 5}).t(), f({2, 4, 7, 2}).in(-1.2, 1.2).sliced()},
                              {f({2, 3, 6, 5}).constant(), f({2, 4, 7, 2})},
                              {f({2, 3, 6, 5}), f({2, 4, 7, 2}).constant()}});
  const Samples solid_grids = both({{f({2, 3, 4, 5, 3}), f({2, 3, 4, 2, 3}).in(-1.2, 1.2)},
                                    {f({2, 3, 4, 5, 3}).t(), f({2, 3, 4, 2, 3}).in(-1.2, 1.2)}});
  const Samples affine = both({{f({2, 2, 3})}, {f({2, 2, 3}).t()}, {f({2, 2, 3}).expanded()}});
  return {
      {"upsample_nearest1d", lines, [](In x) { return at::upsample_nearest1d(x, {13}); }},
      {"upsample_nearest2d", planes, [](In x) { return at::upsample_nearest2d(x, {9, 7}); }},
      {"upsample_nearest2d/scales", planes,
       [](In x) {
         return at::upsample_nearest2d(x, at::OptionalIntArrayRef(), at::ArrayRef<double>({2.0, 1.5}));
       }},
      {"upsample_nearest3d", solids, [](In x) { return at::upsample_nearest3d(x, {5, 7, 2}); }},
      {"_upsample_nearest_exact1d", lines, [](In x) { return at::_upsample_nearest_exact1d(x, {13}); }},
      {"_upsample_nearest_exact2d", planes, [](In x) { return at::_upsample_nearest_exact2d(x, {9, 7}); }},
      {"_upsample_nearest_exact3d", solids, [](In x) { return at::_upsample_nearest_exact3d(x, {5, 7, 2}); }},
      {"upsample_linear1d", lines, [](In x) { return at::upsample_linear1d(x, {13}, false); }},
      {"upsample_bilinear2d", planes, [](In x) { return at::upsample_bilinear2d(x, {9, 7}, false); }},
      {"upsample_bilinear2d/corners", planes, [](In x) { return at::upsample_bilinear2d(x, {4, 9}, true); }},
      {"upsample_bilinear2d/scales", planes,
       [](In x) {
         return at::upsample_bilinear2d(x, at::OptionalIntArrayRef(), false,
                                        at::ArrayRef<double>({2.0, 1.5}));
       }},
      {"upsample_bicubic2d", planes, [](In x) { return at::upsample_bicubic2d(x, {9, 7}, false); }},
      {"upsample_trilinear3d", solids, [](In x) { return at::upsample_trilinear3d(x, {5, 7, 2}, true); }},
      {"_upsample_bilinear2d_aa", planes, [](In x) { return at::_upsample_bilinear2d_aa(x, {4, 3}, false); }},
      {"_upsample_bicubic2d_aa", planes, [](In x) { return at::_upsample_bicubic2d_aa(x, {4, 3}, false); }},
      {"grid_sampler", grids, [](In x, In grid) { return at::grid_sampler(x, grid, 0, 0, false); }},
      {"grid_sampler_2d", grids, [](In x, In grid) { return at::grid_sampler_2d(x, grid, 0, 1, true); }},
      {"grid_sampler_2d/nearest", grids,
       [](In x, In grid) { return at::grid_sampler_2d(x, grid, 1, 2, false); }},
      {"grid_sampler_2d/bicubic", grids,
       [](In x, In grid) { return at::grid_sampler_2d(x, grid, 2, 0, false); }},
      {"grid_sampler_3d", solid_grids,
       [](In x, In grid) { return at::grid_sampler_3d(x, grid, 0, 0, false); }},
      {"affine_grid_generator", affine,
       [](In theta) { return at::affine_grid_generator(theta, {2, 3, 4, 5}, false); }},
      {"affine_grid_generator/solid", both({{f({2, 3, 4})}}),
       [](In theta) { return at::affine_grid_generator(theta, {2, 3, 4, 5, 2}, true); }},
  };
}

}  // namespace tandem::sweep
