// Operators that draw random numbers: libtorch's own, at equal seed.
#include "sweep.h"

#include <ATen/ATen.h>

namespace tandem::sweep {

Rows random_rows() {
  const Samples any = unary(), probabilities = unary(0.1, 0.9), positive = unary(0.5, 3);
  const Samples channels =
      both({{f({2, 4, 6})}, {f({2, 4, 3, 5})}, {f({2, 4, 6}).t()}, {f({3, 4}).sliced()}});
  const Samples attention = both({{f({2, 2, 5, 8}), f({2, 2, 6, 8}), f({2, 2, 6, 8})}});
  return {
      {"dropout", any, [](In x) { return at::dropout(x, 0.4, true); }},
      {"dropout/all", any, [](In x) { return at::dropout(x, 1.0, true); }},
      {"dropout/eval", any, [](In x) { return at::dropout(x, 0.4, false) * 2; }},
      {"native_dropout", any, [](In x) { return at::native_dropout(x, 0.4, true); }},
      {"feature_dropout", channels, [](In x) { return at::feature_dropout(x, 0.4, true); }},
      {"alpha_dropout", any, [](In x) { return at::alpha_dropout(x, 0.4, true); }},
      {"feature_alpha_dropout", channels, [](In x) { return at::feature_alpha_dropout(x, 0.4, true); }},
      {"rrelu", any, [](In x) { return at::rrelu(x, 0.1, 0.4, true); }},
      {"rrelu/eval", any, [](In x) { return at::rrelu(x, 0.1, 0.4, false); }},
      {"bernoulli", probabilities, [](In x) { return at::bernoulli(x) * x; }},
      {"bernoulli/p", any, [](In x) { return at::bernoulli(x.detach(), 0.3) * x; }},
      {"poisson", positive, [](In x) { return at::poisson(x) * x; }},
      {"binomial", pairs(0.1, 0.9),
       [](In count, In p) { return at::binomial((count * 9).floor().detach(), p.detach()) * p; }},
      {"normal/mean", any, [](In mean) { return at::normal(mean, 0.5) * mean; }},
      {"normal/both", pairs(0.5, 2), [](In mean, In std) { return at::normal(mean, std) * mean; }},
      {"_standard_gamma", positive, [](In x) { return at::_standard_gamma(x); }},
      {"_sample_dirichlet", both({{f({5, 3}).in(0.5, 3)}, {f({3}).in(0.5, 3)}}),
       [](In x) { return at::_sample_dirichlet(x.detach()) * x; }},
      {"rand_like", any, [](In x) { return at::rand_like(x) * x; }},
      {"randn_like", any, [](In x) { return at::randn_like(x) * x; }},
      {"randint_like", any, [](In x) { return at::randint_like(x.detach(), 10) * x; }},
      {"rand", along(), [](In x) { return at::rand(x.sizes()) * x; }},
      {"randperm", along(), [](In x) { return at::index_select(x, 0, at::randperm(x.size(0))); }},
      {"multinomial", both({{f({3, 5}).in(0.1, 1)}, {f({5}).in(0.1, 1)}}),
       [](In x) { return at::gather(x, -1, at::multinomial(x, 4, true)); }},
      {"uniform_", any, [](In x) { return x.clone().uniform_(-1, 1) + x; }},
      {"normal_", any, [](In x) { return x.clone().normal_(0.5, 2) + x; }},
      {"exponential_", any, [](In x) { return x.clone().exponential_(2) + x; }},
      {"cauchy_", any, [](In x) { return x.clone().cauchy_() + x; }},
      {"log_normal_", any, [](In x) { return x.clone().log_normal_() + x; }},
      {"geometric_", any, [](In x) { return x.clone().geometric_(0.3) + x; }},
      {"bernoulli_", any, [](In x) { return x.clone().bernoulli_(0.3) + x; }},
      {"dropout_", any,
       [](In x) {
         at::Tensor y = x * 2;
         return at::dropout_(y, 0.4, true);
       }},
      {"dropout/twice", any, [](In x) { return at::dropout(at::dropout(x, 0.4, true).tanh(), 0.2, true); }},
      {"scaled_dot_product_attention/dropout", attention,
       [](In q, In k, In v) { return at::scaled_dot_product_attention(q, k, v, {}, 0.3); }},
  };
}

}  // namespace tandem::sweep
