// Operators that write into their argument, here a fresh copy or a view of one.
#include "sweep.h"

#include <ATen/ATen.h>

namespace tandem::sweep {

Rows inplace_rows() {
  const Samples any = unary(), positive = unary(0.2, 2), rows = along(), planes = matrices();
  const Samples onto = both({{f({7, 9}), f({7, 9})},
                             {f({3, 4}), f({4})},
                             {f({2, 3}), f({})},
                             {f({}), f({})},
                             {f({0, 3}), f({3})},
                             {f({5, 7}).t(), f({5, 7})},
                             {f({4, 5}).sliced(), f({4, 5}).expanded()},
                             {f({3, 4}), f({3, 4}).f64()}});
  const Samples masked =
      both({{f({5, 7}), mask({5, 7})}, {f({3, 4}).t(), mask({4})}, {f({0, 3}), mask({0, 3})}});
  const Samples rows_of =
      both({{f({5, 7}), index({4}, 5), f({4, 7})}, {f({5, 7}).t(), index({4}, 5), f({4, 7}).t()}});
  const Samples scattered =
      both({{f({5, 7}), index({5, 3}, 7), f({5, 3})}, {f({5, 7}).t(), index({2, 4}, 7), f({2, 4}).sliced()}});
  const Samples one_row = both({{f({5, 7}), f({7})}, {f({5, 7}).t(), f({7}).sliced()}, {f({5, 7}), f({})}});
  return {
      {"add_", onto, [](In x, In y) { return x.clone().add_(y, 0.5); }},
      {"sub_", onto, [](In x, In y) { return x.clone().sub_(y); }},
      {"mul_", onto, [](In x, In y) { return x.clone().mul_(y); }},
      {"mul_/kept", onto,
       [](In x, In y) {
         at::Tensor z = x.clone();
         at::Tensor before = z + y;
         return Tensors{before, z.mul_(2)};
       }},
      {"mul_/saved_throws", both({{f({3, 4}), f({3, 4})}, {f({3, 4}).t(), f({4})}}),
       [](In x, In y) {
         at::Tensor z = x.clone();
         at::Tensor before = z * y;
         return Tensors{before, z.mul_(2)};
       }},
      {"div_", onto, [](In x, In y) { return x.clone().div_(y); }},
      {"pow_", positive, [](In x) { return x.clone().pow_(1.7); }},
      {"copy_", onto, [](In x, In y) { return x.clone().copy_(y) * x; }},
      {"fill_", any, [](In x) { return x.clone().fill_(0.5) + x; }},
      {"fill_/tensor", both({{f({3, 4}), f({})}, {f({3, 4}).t(), f({})}}),
       [](In x, In value) { return x.clone().fill_(value) + x; }},
      {"zero_", any, [](In x) { return x.clone().zero_() + x; }},
      {"exp_", any, [](In x) { return x.clone().exp_(); }},
      {"sin_", any, [](In x) { return x.clone().sin_(); }},
      {"cos_", any, [](In x) { return x.clone().cos_(); }},
      {"sqrt_", positive, [](In x) { return x.clone().sqrt_(); }},
      {"rsqrt_", positive, [](In x) { return x.clone().rsqrt_(); }},
      {"log_", positive, [](In x) { return x.clone().log_(); }},
      {"abs_", any, [](In x) { return x.clone().abs_(); }},
      {"neg_", any, [](In x) { return x.clone().neg_(); }},
      {"reciprocal_", positive, [](In x) { return x.clone().reciprocal_(); }},
      {"tanh_", any, [](In x) { return x.clone().tanh_(); }},
      {"sigmoid_", any, [](In x) { return x.clone().sigmoid_(); }},
      {"relu_", any, [](In x) { return x.clone().relu_(); }},
      {"square_", any, [](In x) { return x.clone().square_(); }},
      {"clamp_", any, [](In x) { return x.clone().clamp_(-0.5, 0.5); }},
      {"leaky_relu_", any,
       [](In x) {
         at::Tensor y = x.clone();
         return at::leaky_relu_(y, 0.1);
       }},
      {"elu_", any,
       [](In x) {
         at::Tensor y = x.clone();
         return at::elu_(y);
       }},
      {"hardtanh_", any,
       [](In x) {
         at::Tensor y = x.clone();
         return at::hardtanh_(y);
       }},
      {"silu_", any,
       [](In x) {
         at::Tensor y = x.clone();
         return at::silu_(y);
       }},
      {"hardswish_", any,
       [](In x) {
         at::Tensor y = x.clone();
         return at::hardswish_(y);
       }},
      {"threshold_", any,
       [](In x) {
         at::Tensor y = x.clone();
         return at::threshold_(y, 0.2, -1);
       }},
      {"addcmul_", pairs(), [](In x, In y) { return x.clone().addcmul_(x, y, 0.5); }},
      {"addcdiv_", pairs(0.5, 2), [](In x, In y) { return x.clone().addcdiv_(x, y, 0.5); }},
      {"addmm_", both({{f({3, 5}), f({3, 4}), f({4, 5})}, {f({3, 5}).t(), f({3, 4}).t(), f({4, 5}).t()}}),
       [](In x, In y, In z) { return x.clone().addmm_(y, z, 0.5, 2); }},
      {"baddbmm_", both({{f({2, 3, 5}), f({2, 3, 4}), f({2, 4, 5})}}),
       [](In x, In y, In z) { return x.clone().baddbmm_(y, z); }},
      {"lerp_", pairs(), [](In x, In y) { return x.clone().lerp_(y, 0.3); }},
      {"masked_fill_", masked, [](In x, In m) { return x.clone().masked_fill_(m, -1); }},
      {"masked_scatter_", with(masked, {f({40})}),
       [](In x, In m, In y) { return x.clone().masked_scatter_(m, y); }},
      {"index_add_", rows_of, [](In x, In i, In y) { return x.clone().index_add_(0, i, y); }},
      {"index_copy_", rows_of, [](In x, In i, In y) { return x.clone().index_copy_(0, i, y); }},
      {"index_fill_", rows_of, [](In x, In i, In y) { return x.clone().index_fill_(0, i, 0.5) * y.sum(); }},
      {"index_put_", rows_of, [](In x, In i, In y) { return x.clone().index_put_({i}, y, true); }},
      {"scatter_", scattered, [](In x, In i, In y) { return x.clone().scatter_(1, i, y); }},
      {"scatter_add_", scattered, [](In x, In i, In y) { return x.clone().scatter_add_(1, i, y); }},
      {"put_", both({{f({5, 7}), index({4}, 35), f({4})}}),
       [](In x, In i, In y) { return x.clone().put_(i, y, true); }},
      {"cumsum_", rows, [](In x) { return x.clone().cumsum_(0); }},
      {"tril_", planes, [](In x) { return x.clone().tril_(); }},
      {"triu_", planes, [](In x) { return x.clone().triu_(1); }},
      {"fill_diagonal_", both({{f({5, 5})}, {f({4, 6}).t()}}),
       [](In x) { return x.clone().fill_diagonal_(2.5); }},
      {"transpose_", planes, [](In x) { return x.clone().transpose_(0, 1); }},
      {"t_", both({{f({4, 6})}, {f({4, 6}).t()}}), [](In x) { return x.clone().t_() * 2; }},
      {"unsqueeze_", any, [](In x) { return x.clone().unsqueeze_(0); }},
      {"squeeze_", both({{f({1, 4})}, {f({3, 1})}}), [](In x) { return x.clone().squeeze_(); }},
      {"renorm_", both({{f({5, 7})}, {f({4, 6}).t()}}), [](In x) { return x.clone().renorm_(2, 0, 1.5); }},
      {"embedding_renorm_", both({{f({10, 4}), index({6}, 10)}}),
       [](In x, In i) {
         at::Tensor weight = x.detach().clone();
         return at::embedding(at::embedding_renorm_(weight, i, 1.0, 2.0), i) * x.sum();
       }},
      {"select/write", one_row,
       [](In x, In y) {
         at::Tensor z = x.clone();
         z.select(0, 2).mul_(y);
         return z * x;
       }},
      {"slice/write", one_row,
       [](In x, In y) {
         at::Tensor z = x.clone();
         z.slice(0, 1, 5, 2).copy_(y);
         return z * x;
       }},
      {"transpose/write", pairs(),
       [](In x, In y) {
         at::Tensor z = x.dim() == 2 ? x.clone() : x.expand({2, 3}).clone();
         z.t().add_(y.sum());
         z.view({-1}).mul_(2);
         return z.sin();
       }},
      {"diagonal/write", both({{f({5, 7}), f({5})}, {f({5, 7}).t(), f({5})}}),
       [](In x, In y) {
         at::Tensor z = x.clone();
         z.diagonal().add_(y);
         return Tensors{z, z.diagonal()};
       }},
      {"narrow/write", planes,
       [](In x) {
         at::Tensor z = x * 2;
         z.narrow(-1, 1, 2).add_(x.narrow(-1, 0, 2).exp());
         z.narrow(-1, 0, 2).mul_(x.narrow(-1, 1, 2));
         return z;
       }},
      {"split/write", both({{f({6, 4})}, {f({6, 4}).t()}}),
       [](In x) {
         at::Tensor z = x.clone();
         std::vector<at::Tensor> parts = at::unsafe_split(z, 2);
         parts[0].mul_(parts[1]);
         return Tensors{parts[0], parts[2], z * 1};
       }},
      {"view/write", both({{f({4, 6})}, {f({24})}}),
       [](In x) {
         at::Tensor z = x.clone();
         at::Tensor seen = z.view({-1, 2});
         z.mul_(3);
         seen[1].fill_(1);
         return Tensors{seen, z};
       }},
      {"chain/write", any, [](In x) { return x.clone().mul_(2).add_(x).mul_(x).tanh_(); }},
  };
}

}  // namespace tandem::sweep
