// Normalisations; running statistics are written on a private copy and returned.
#include "sweep.h"

#include <ATen/ATen.h>

namespace tandem::sweep {

namespace {

Tensors batch_norm(const Tensors& in, bool training) {
  at::Tensor mean = in[3].clone(), variance = in[4].clone();
  at::Tensor result = at::batch_norm(in[0], in[1], in[2], mean, variance, training, 0.1, 1e-5, false);
  return {result, mean, variance};
}

}  // namespace

Rows normalisation_rows() {
  const Samples layers = both({{f({3, 4, 5}), f({5}), f({5})},
                               {f({5}), f({5}), f({5})},
                               {f({4, 5}).t(), f({5}).sliced(), f({5}).expanded()},
                               {f({3, 5}), none(), none()},
                               {f({3, 5}), f({5}), none()},
                               {f({0, 5}), f({5}), f({5})},
                               {f({3, 5}).expanded(), f({5}).constant(), f({5})}});
  const Samples groups = both({{f({2, 4, 3, 5}), f({4}), f({4})},
                               {f({2, 4}), f({4}), f({4})},
                               {f({2, 4, 6}).t(), f({4}).sliced(), f({4})},
                               {f({2, 4, 3, 5}).channels_last(), f({4}), f({4})},
                               {f({2, 4, 3, 5}), none(), none()},
                               {f({0, 4, 3}), f({4}), f({4})}});
  const Sample statistics = {f({4}).in(-1, 1).constant(), f({4}).in(0.5, 1.5).constant()};
  const Samples batches = with(both({{f({3, 4, 2, 5}), f({4}), f({4})},
                                     {f({5, 4}), f({4}), f({4})},
                                     {f({3, 4, 6}).t(), f({4}).sliced(), f({4})},
                                     {f({3, 4, 2, 5}).channels_last(), f({4}), f({4})},
                                     {f({3, 4, 2}), none(), none()},
                                     {f({2, 4, 2, 3, 2}), f({4}), f({4}).constant()}}),
                               statistics);
  const Samples plain = both({{f({3, 4, 2, 5}), f({4}), f({4})},
                              {f({5, 4}), f({4}), f({4})},
                              {f({3, 4, 6}).t(), f({4}).sliced(), f({4})},
                              {f({3, 4, 2, 5}).channels_last(), none(), none()},
                              {f({3, 4, 5}).constant(), f({4}), f({4})}});
  const Samples instances = both({{f({3, 4, 2, 5}), f({4}), f({4})},
                                  {f({3, 4, 6}).t(), f({4}).sliced(), f({4})},
                                  {f({3, 4, 2, 5}).channels_last(), none(), none()}});
  return {
      {"layer_norm", layers, [](In x, In w, In b) { return at::layer_norm(x, {5}, w, b); }},
      {"layer_norm/planes",
       both({{f({3, 4, 5}), f({4, 5}), f({4, 5})}, {f({3, 4, 5}).t(), f({4, 5}).t(), f({4, 5})}}),
       [](In x, In w, In b) { return at::layer_norm(x, {4, 5}, w, b, 1e-3); }},
      {"native_layer_norm", layers,
       [](In x, In w, In b) { return at::native_layer_norm(x, {5}, w, b, 1e-5); }},
      {"rms_norm", layers, [](In x, In w, In) { return at::rms_norm(x, {5}, w); }},
      {"rms_norm/eps", layers, [](In x, In w, In) { return at::rms_norm(x, {5}, w, 1e-3); }},
      {"group_norm", groups, [](In x, In w, In b) { return at::group_norm(x, 2, w, b); }},
      {"native_group_norm", both({{f({2, 4, 3, 5}), f({4}), f({4})}, {f({2, 4, 15}), none(), none()}}),
       [](In x, In w, In b) { return at::native_group_norm(x, w, b, 2, 4, 15, 2, 1e-5); }},
      {"batch_norm", batches, [](const Tensors& in) { return batch_norm(in, true); }},
      {"batch_norm/eval", batches, [](const Tensors& in) { return batch_norm(in, false); }},
      {"batch_norm/no_statistics", plain,
       [](In x, In w, In b) { return at::batch_norm(x, w, b, {}, {}, true, 0.1, 1e-5, false); }},
      {"native_batch_norm", plain,
       [](In x, In w, In b) { return at::native_batch_norm(x, w, b, {}, {}, true, 0.1, 1e-5); }},
      {"native_batch_norm/statistics", batches,
       [](const Tensors& in) {
         at::Tensor mean = in[3].clone(), variance = in[4].clone();
         return std::tuple_cat(at::native_batch_norm(in[0], in[1], in[2], mean, variance, true, 0.1, 1e-5),
                               std::make_tuple(mean, variance));
       }},
      {"_native_batch_norm_legit", batches,
       [](const Tensors& in) {
         at::Tensor mean = in[3].clone(), variance = in[4].clone();
         return std::tuple_cat(
             at::_native_batch_norm_legit(in[0], in[1], in[2], mean, variance, true, 0.1, 1e-5),
             std::make_tuple(mean, variance));
       }},
      {"instance_norm", instances,
       [](In x, In w, In b) { return at::instance_norm(x, w, b, {}, {}, true, 0.1, 1e-5, false); }},
      {"instance_norm/statistics", with(instances, statistics),
       [](In x, In w, In b, In mean, In variance) {
         at::Tensor running_mean = mean.clone(), running_variance = variance.clone();
         return Tensors{at::instance_norm(x, w, b, running_mean, running_variance, true, 0.1, 1e-5, false),
                        running_mean, running_variance};
       }},
      {"_weight_norm", both({{f({3, 4}), f({3, 1})}, {f({3, 4}).t(), f({3, 1})}}),
       [](In v, In g) { return at::_weight_norm(v, g, 0); }},
      {"_weight_norm_interface", both({{f({3, 4}), f({3, 1})}}),
       [](In v, In g) { return std::get<0>(at::_weight_norm_interface(v, g, 0)); }},
  };
}

}  // namespace tandem::sweep
