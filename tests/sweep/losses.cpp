// Losses.
#include "sweep.h"

#include <ATen/ATen.h>
#include <ATen/core/Reduction.h>

namespace tandem::sweep {

Rows loss_rows() {
  const Samples any = pairs(), probabilities = pairs(0.05, 0.95), positive = pairs(0.1, 2);
  const Samples spread = any + both({{f({3, 4}), f({4})}, {f({}), f({3})}});
  const Samples classes = both({{f({5, 7}), index({5}, 7)},
                                {f({5, 7}).t(), index({5}, 7).sliced()},
                                {f({7}), index({}, 7)},
                                {f({0, 7}), index({0}, 7)},
                                {f({5, 7}).expanded(), index({5}, 7)}});
  const Samples pixels = both({{f({2, 5, 3, 4}), index({2, 3, 4}, 5)},
                               {f({2, 5, 3, 4}).channels_last(), index({2, 3, 4}, 5)},
                               {f({2, 5, 3, 4}).t(), index({2, 3, 4}, 5).t()}});
  const Samples triples = both({{f({5, 3}), f({5, 3}), f({5, 3})},
                                {f({5, 3}).t(), f({5, 3}).t(), f({5, 3}).t()},
                                {f({5, 3}).sliced(), f({5, 3}).expanded(), f({5, 3})},
                                {f({0, 3}), f({0, 3}), f({0, 3})}});
  const Samples vectors = both({{f({5, 3}), f({5, 3}), f({5}).constant()},
                                {f({3, 5}).sliced(), f({3, 5}).expanded(), f({3}).constant()}});
  return {
      {"mse_loss", any, [](In x, In y) { return at::mse_loss(x, y); }},
      {"mse_loss/none", spread, [](In x, In y) { return at::mse_loss(x, y, at::Reduction::None); }},
      {"mse_loss/sum", any, [](In x, In y) { return at::mse_loss(x, y, at::Reduction::Sum); }},
      {"l1_loss", any, [](In x, In y) { return at::l1_loss(x, y); }},
      {"l1_loss/none", any, [](In x, In y) { return at::l1_loss(x, y, at::Reduction::None); }},
      {"smooth_l1_loss", any, [](In x, In y) { return at::smooth_l1_loss(x, y); }},
      {"smooth_l1_loss/none", any,
       [](In x, In y) { return at::smooth_l1_loss(x, y, at::Reduction::None, 0.5); }},
      {"huber_loss", any, [](In x, In y) { return at::huber_loss(x, y, at::Reduction::Mean, 0.7); }},
      {"huber_loss/none", any, [](In x, In y) { return at::huber_loss(x, y, at::Reduction::None); }},
      {"binary_cross_entropy", probabilities, [](In x, In y) { return at::binary_cross_entropy(x, y); }},
      {"binary_cross_entropy/weight", with(probabilities, {f({}).in(0.5, 1).constant()}),
       [](In x, In y, In w) { return at::binary_cross_entropy(x, y, w, at::Reduction::None); }},
      {"binary_cross_entropy_with_logits", any,
       [](In x, In y) { return at::binary_cross_entropy_with_logits(x, y); }},
      {"binary_cross_entropy_with_logits/weights",
       with(any, {f({}).in(0.5, 1).constant(), f({}).in(0.5, 1).constant()}),
       [](In x, In y, In w, In p) {
         return at::binary_cross_entropy_with_logits(x, y, w, p, at::Reduction::Sum);
       }},
      {"kl_div", positive, [](In x, In y) { return at::kl_div(x, y); }},
      {"kl_div/log_target", any, [](In x, In y) { return at::kl_div(x, y, at::Reduction::Sum, true); }},
      {"poisson_nll_loss", positive,
       [](In x, In y) { return at::poisson_nll_loss(x, y, true, true, 1e-8, at::Reduction::Mean); }},
      {"soft_margin_loss", any, [](In x, In y) { return at::soft_margin_loss(x, y.detach()); }},
      {"hinge_embedding_loss", pairs(),
       [](In x, In y) { return at::hinge_embedding_loss(x, y.sign().detach(), 1.2); }},
      {"margin_ranking_loss", triples,
       [](In x, In y, In t) { return at::margin_ranking_loss(x, y, t.sign().detach(), 0.3); }},
      {"cosine_embedding_loss", vectors,
       [](In x, In y, In t) { return at::cosine_embedding_loss(x, y, t.sign(), 0.1); }},
      {"triplet_margin_loss", triples, [](In a, In p, In n) { return at::triplet_margin_loss(a, p, n); }},
      {"triplet_margin_loss/swap", triples,
       [](In a, In p, In n) {
         return at::triplet_margin_loss(a, p, n, 0.8, 2, 1e-6, true, at::Reduction::None);
       }},
      {"nll_loss", classes, [](In x, In t) { return at::nll_loss(x, t); }},
      {"nll_loss/weight", with(classes, {f({7}).in(0.5, 1).constant()}),
       [](In x, In t, In w) { return at::nll_loss(x, t, w, at::Reduction::Sum, 3); }},
      {"nll_loss/none", classes, [](In x, In t) { return at::nll_loss(x, t, {}, at::Reduction::None); }},
      {"nll_loss2d", pixels, [](In x, In t) { return at::nll_loss2d(x, t); }},
      {"nll_loss_nd", both({{f({2, 5, 6}), index({2, 6}, 5)}}) + pixels,
       [](In x, In t) { return at::nll_loss_nd(x, t); }},
      {"cross_entropy_loss", classes, [](In x, In t) { return at::cross_entropy_loss(x, t); }},
      {"cross_entropy_loss/smoothed", with(classes, {f({7}).in(0.5, 1).constant()}),
       [](In x, In t, In w) { return at::cross_entropy_loss(x, t, w, at::Reduction::Sum, 2, 0.1); }},
      {"cross_entropy_loss/smoothed_mean", classes,
       [](In x, In t) { return at::cross_entropy_loss(x, t, {}, at::Reduction::Mean, 2, 0.1); }},
      {"cross_entropy_loss/pixels", pixels,
       [](In x, In t) { return at::cross_entropy_loss(x, t, {}, at::Reduction::None); }},
      {"cross_entropy_loss/probabilities",
       both({{f({5, 7}), f({5, 7}).in(0, 1)}, {f({5, 7}).t(), f({5, 7}).in(0, 1)}}),
       [](In x, In t) { return at::cross_entropy_loss(x, t); }},
      {"multi_margin_loss",
       both({{f({5, 7}), index({5}, 7)}, {f({5, 7}).t(), index({5}, 7)}, {f({7}), index({}, 7)}}),
       [](In x, In t) { return at::multi_margin_loss(x, t, 2, 0.8); }},
      {"multilabel_margin_loss", both({{f({5, 7}), index({5, 7}, 7)}, {f({5, 7}).t(), index({5, 7}, 7)}}),
       [](In x, In t) { return at::multilabel_margin_loss(x, t); }},
      {"ctc_loss", both({{f({6, 2, 5}), index({2, 3}, 4)}}),
       [](In x, In t) {
         return at::ctc_loss(x.log_softmax(-1), t + 1, at::IntArrayRef({6, 5}), at::IntArrayRef({3, 2}));
       }},
  };
}

}  // namespace tandem::sweep
