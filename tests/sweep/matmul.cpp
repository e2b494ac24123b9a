// Products of vectors, matrices and batches of them.
#include "sweep.h"

#include <ATen/ATen.h>

namespace tandem::sweep {

Rows matmul_rows() {
  const Samples two = both({{f({3, 4}), f({4, 5})},
                            {f({3, 4}).t(), f({4, 5}).t()},
                            {f({3, 4}).t(), f({4, 5})},
                            {f({3, 0}), f({0, 5})},
                            {f({0, 4}), f({4, 5})},
                            {f({3, 4}).sliced(), f({4, 5}).expanded()},
                            {f({1, 1}), f({1, 1})}});
  const Samples batched = both({{f({2, 3, 4}), f({2, 4, 5})},
                                {f({2, 3, 4}).t(), f({2, 4, 5}).t()},
                                {f({0, 3, 4}), f({0, 4, 5})},
                                {f({2, 3, 4}).expanded(), f({2, 4, 5}).sliced()},
                                {f({2, 3, 0}), f({2, 0, 5})}});
  const Samples free = both({{f({3}), f({3})},
                             {f({3, 4}), f({4})},
                             {f({4}), f({4, 3})},
                             {f({3, 4}), f({4, 5})},
                             {f({2, 3, 4}), f({4, 5})},
                             {f({3, 4}), f({2, 4, 5})},
                             {f({2, 1, 3, 4}), f({5, 4, 3})},
                             {f({2, 3, 4}).t(), f({4})},
                             {f({0, 3, 4}), f({4, 5})}});
  const Samples vectors =
      both({{f({5}), f({5})}, {f({5}).sliced(), f({5}).expanded()}, {f({0}), f({0})}, {f({1}), f({1})}});
  const Samples matrix_vector = both({{f({3, 4}), f({4})},
                                      {f({3, 4}).t(), f({4}).sliced()},
                                      {f({0, 4}), f({4})},
                                      {f({3, 0}), f({0})},
                                      {f({3, 4}).expanded(), f({4}).expanded()}});
  const Samples layers = both({{f({3, 4}), f({5, 4}), f({5})},
                               {f({2, 3, 4}), f({5, 4}), f({5})},
                               {f({4}), f({5, 4}), f({5})},
                               {f({3, 4}).t(), f({5, 4}).t(), f({5}).sliced()},
                               {f({0, 4}), f({5, 4}), f({5})},
                               {f({2, 3, 4}).expanded(), f({5, 4}), f({5}).constant()},
                               {f({3, 4}), f({5, 4}), none()}});
  const Samples added = both({{f({3, 5}), f({3, 4}), f({4, 5})},
                              {f({5}), f({3, 4}), f({4, 5})},
                              {f({}), f({3, 4}).t(), f({4, 5}).t()},
                              {f({3, 1}), f({3, 4}).sliced(), f({4, 5}).expanded()},
                              {f({0, 5}), f({0, 4}), f({4, 5})},
                              {f({3, 5}), f({3, 0}), f({0, 5})}});
  const Samples added_batches = both({{f({2, 3, 5}), f({2, 3, 4}), f({2, 4, 5})},
                                      {f({5}), f({2, 3, 4}).t(), f({2, 4, 5})},
                                      {f({3, 5}), f({2, 3, 4}), f({2, 4, 5}).t()},
                                      {f({3, 5}), f({0, 3, 4}), f({0, 4, 5})}});
  const Samples attention =
      both({{f({2, 2, 5, 8}), f({2, 2, 6, 8}), f({2, 2, 6, 8})},
            {f({2, 5, 8}), f({2, 6, 8}), f({2, 6, 8})},
            {f({2, 2, 5, 8}).t(), f({2, 2, 6, 8}).sliced(), f({2, 2, 6, 8}).expanded()}});
  const Samples complex =
      both({{c({3, 4}), c({4, 5})}, {c({3, 4}).t(), c({4, 5}).t()}, {c({0, 4}), c({4, 5})}});
  const Samples squares = both({{f({3, 3}).in(-0.5, 0.5)},
                                {f({2, 3, 3}).in(-0.5, 0.5)},
                                {f({3, 3}).in(-0.5, 0.5).t()},
                                {f({0, 2, 2})},
                                {f({1, 1})}});
  const Samples three =
      both({{f({3, 4}), f({4, 5}), f({5, 2})}, {f({3, 4}).t(), f({4, 5}).sliced(), f({5, 2}).expanded()}});
  return {
      {"mm", two, [](In x, In y) { return at::mm(x, y); }},
      {"mm/complex", complex, [](In x, In y) { return at::mm(x, y); }},
      {"mm/conjugate", complex, [](In x, In y) { return at::mm(x.conj(), y.conj()); }},
      {"bmm", batched, [](In x, In y) { return at::bmm(x, y); }},
      {"matmul", free, [](In x, In y) { return at::matmul(x, y); }},
      {"linalg_matmul", free, [](In x, In y) { return at::linalg_matmul(x, y); }},
      {"mv", matrix_vector, [](In x, In y) { return at::mv(x, y); }},
      {"dot", vectors, [](In x, In y) { return at::dot(x, y); }},
      {"vdot", vectors, [](In x, In y) { return at::vdot(x, y); }},
      {"vdot/complex", both({{c({5}), c({5})}, {c({5}).sliced(), c({5})}}),
       [](In x, In y) { return at::vdot(x, y); }},
      {"inner",
       both({{f({3, 4}), f({5, 4})}, {f({4}), f({4})}, {f({}), f({3})}, {f({2, 3, 4}).t(), f({4}).sliced()}}),
       [](In x, In y) { return at::inner(x, y); }},
      {"outer", vectors, [](In x, In y) { return at::outer(x, y); }},
      {"ger", vectors, [](In x, In y) { return at::ger(x, y); }},
      {"linalg_vecdot", pairs(), [](In x, In y) { return at::linalg_vecdot(x, y, -1); }},
      {"kron",
       both({{f({2, 3}), f({4, 2})},
             {f({3}), f({2, 2})},
             {f({2, 3}).t(), f({2, 2}).sliced()},
             {f({}), f({3})}}),
       [](In x, In y) { return at::kron(x, y); }},
      {"addmm", added, [](In x, In y, In z) { return at::addmm(x, y, z); }},
      {"addmm/scaled", added, [](In x, In y, In z) { return at::addmm(x, y, z, 0.5, 1.5); }},
      {"addmm/beta_zero", added, [](In x, In y, In z) { return at::addmm(x, y, z, 0, 2); }},
      {"_addmm_activation", added,
       [](In x, In y, In z) {
         return at::_addmm_activation(x.detach(), y.detach(), z.detach()) + at::addmm(x, y, z);
       }},
      {"addmv",
       both({{f({3}), f({3, 4}), f({4})},
             {f({}), f({3, 4}).t(), f({4}).sliced()},
             {f({3}), f({3, 0}), f({0})}}),
       [](In x, In y, In z) { return at::addmv(x, y, z, 0.5, 1.5); }},
      {"addr",
       both({{f({3, 4}), f({3}), f({4})},
             {f({4}), f({3}).sliced(), f({4}).expanded()},
             {f({0, 4}), f({0}), f({4})}}),
       [](In x, In y, In z) { return at::addr(x, y, z, 0.5, 1.5); }},
      {"baddbmm", added_batches, [](In x, In y, In z) { return at::baddbmm(x, y, z, 0.5, 1.5); }},
      {"addbmm",
       both({{f({3, 5}), f({2, 3, 4}), f({2, 4, 5})}, {f({5}), f({2, 3, 4}).t(), f({2, 4, 5}).t()}}),
       [](In x, In y, In z) { return at::addbmm(x, y, z, 0.5, 1.5); }},
      {"linear", layers, [](In x, In weight, In bias) { return at::linear(x, weight, bias); }},
      {"bilinear",
       both({{f({3, 4}), f({3, 5}), f({2, 4, 5}), f({2})},
             {f({3, 4}).t(), f({3, 5}), f({2, 4, 5}).t(), f({2})},
             {f({2, 3, 4}), f({2, 3, 5}), f({2, 4, 5}), none()}}),
       [](In x, In y, In weight, In bias) { return at::bilinear(x, y, weight, bias); }},
      {"_trilinear", both({{f({3, 4}), f({2, 4, 5}), f({3, 5})}}),
       [](In x, In y, In z) { return at::_trilinear(x, y, z, {1, 3}, {0}, {1, 2}, {2, 3}); }},
      {"einsum", batched, [](In x, In y) { return at::einsum("bij,bjk->ik", {x, y}); }},
      {"einsum/diagonal", both({{f({3, 3}), f({3})}, {f({3, 3}).t(), f({3}).sliced()}}),
       [](In x, In y) { return at::einsum("ii,i->i", {x, y}); }},
      {"tensordot", both({{f({2, 3, 4}), f({4, 3, 5})}, {f({2, 3, 4}).t(), f({4, 3, 5}).sliced()}}),
       [](In x, In y) { return at::tensordot(x, y, {1, 2}, {1, 0}); }},
      {"chain_matmul", three, [](In x, In y, In z) { return at::chain_matmul({x, y, z}); }},
      {"linalg_multi_dot", three, [](In x, In y, In z) { return at::linalg_multi_dot({x, y, z}); }},
      {"matrix_power", squares, [](In x) { return at::matrix_power(x, 3); }},
      {"linalg_matrix_power", squares, [](In x) { return at::linalg_matrix_power(x, 4); }},
      {"matrix_exp", squares, [](In x) { return at::matrix_exp(x); }},
      {"cross", both({{f({4, 3}), f({4, 3})}, {f({4, 3}).t(), f({4, 3}).sliced()}, {f({0, 3}), f({0, 3})}}),
       [](In x, In y) { return at::cross(x, y, -1); }},
      {"linalg_cross",
       both({{f({4, 3}), f({4, 3})}, {f({4, 3}), f({1, 3})}, {f({2, 1, 3}), f({1, 5, 3}).sliced()}}),
       [](In x, In y) { return at::linalg_cross(x, y); }},
      {"cdist",
       both({{f({4, 3}), f({5, 3})},
             {f({2, 4, 3}), f({2, 5, 3})},
             {f({4, 3}).t(), f({5, 3}).sliced()},
             {f({0, 3}), f({5, 3})}}),
       [](In x, In y) { return at::cdist(x, y); }},
      {"cdist/one", both({{f({4, 3}), f({5, 3})}, {f({2, 4, 3}), f({2, 5, 3}).sliced()}}),
       [](In x, In y) { return at::cdist(x, y, 1); }},
      {"pdist", both({{f({5, 3})}, {f({3, 5}).t()}, {f({1, 3})}}), [](In x) { return at::pdist(x); }},
      {"scaled_dot_product_attention", attention,
       [](In q, In k, In v) { return at::scaled_dot_product_attention(q, k, v); }},
      {"scaled_dot_product_attention/causal",
       both({{f({2, 2, 5, 8}), f({2, 2, 5, 8}), f({2, 2, 5, 8})},
             {f({2, 2, 5, 8}).t(), f({2, 2, 5, 8}), f({2, 2, 5, 8}).t()}}),
       [](In q, In k, In v) { return at::scaled_dot_product_attention(q, k, v, {}, 0.0, true); }},
      {"scaled_dot_product_attention/mask", with(attention, {mask({5, 6}), f({5, 6})}),
       [](In q, In k, In v, In m, In bias) {
         return Tensors{at::scaled_dot_product_attention(q, k, v, at::logical_or(m, m.logical_not())),
                        at::scaled_dot_product_attention(q, k, v, bias)};
       }},
  };
}

}  // namespace tandem::sweep
