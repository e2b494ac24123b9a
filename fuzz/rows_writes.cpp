#include "fuzz/row.h"

namespace tandem::fuzz {

std::vector<Row> write_rows() {
  return {
      ROW(Write, 4, 2, "", t[0].add_(t[1])),
      ROW(Write, 4, 2, "", t[0].mul_(t[1])),
      ROW(Write, 3, 1, "n", t[0].mul_(i[0])),
      ROW(Write, 1, 1, "n", t[0].add_(i[0])),
      ROW(Write, 3, 2, "", t[0].copy_(t[1])),
      ROW(Write, 1, 1, "n", t[0].fill_(i[0])),
      ROW(Write, 1, 1, "", t[0].zero_()),
      ROW(Write, 2, 1, "", t[0].sin_()),
      ROW(Write, 1, 1, "", t[0].exp_()),
      ROW(Write, 1, 1, "", t[0].relu_()),
      ROW(Write, 1, 1, "", t[0].sigmoid_()),
      ROW(Write, 1, 1, "", t[0].neg_()),
      ROW(Write, 1, 1, "", t[0].clamp_(-1, 1)),
      ROW(Write, 1, 3, "", t[0].addcmul_(t[1], t[2])),
      ROW(Write, 1, 3, "", t[0].lerp_(t[1], t[2])),
      ROW(Write, 1, 2, "", t[0].masked_fill_(at::gt(t[1], 0), 2)),
      ROW(Write, 1, 2, "d", t[0].index_add_(i[0], at::arange(t[1].size(i[0])), t[1])),
      ROW(Write, 1, 2, "d", t[0].index_copy_(i[0], at::arange(t[1].size(i[0])), t[1])),
      ROW(Write, 1, 1, "d", t[0].index_fill_(i[0], at::zeros({1}, at::kLong), 3)),
      ROW(Write, 1, 1, "d", t[0].cumsum_(i[0])),
      ROW(Write, 1, 1, "", t[0].tril_()),
      ROW(Write, 1, 3, "", t[0].addmm_(t[1], t[2])),
      ROW(Write, 1, 2, "", t[0].logical_and_(t[1])),
      ROW(Write, 2, 2, "dx", t[0].select(i[0], i[1]).add_(t[1])),
      ROW(Write, 2, 1, "d", t[0].slice(i[0], 1).mul_(2)),
      ROW(Write, 1, 1, "", t[0].view({-1}).mul_(3)),
      ROW(Write, 1, 1, "", t[0].detach().mul_(2)),
      ROW(Write, 1, 1, "", at::dropout_(t[0], 0.5, true)),
      ROW(Write, 1, 1, "", t[0].uniform_()),
      ROW(Write, 1, 1, "", t[0].normal_()),
      ROW(Write, 1, 1, "", t[0].bernoulli_(0.5)),
      ROW(Write, 2, 3, "", at::add_out(t[0], t[1], t[2])),
      ROW(Write, 1, 3, "", at::mul_out(t[0], t[1], t[2])),
      ROW(Write, 1, 2, "", at::sin_out(t[0], t[1])),
      ROW(Write, 1, 3, "", at::matmul_out(t[0], t[1], t[2])),
      VOID_ROW(Write, 2, 2, "n", at::_foreach_mul_({t[0], t[1]}, i[0])),
      VOID_ROW(Write, 2, 3, "", at::_foreach_add_({t[0], t[1]}, {t[1], t[2]})),
      VOID_ROW(Write, 1, 4, "", at::_foreach_addcmul_({t[0], t[1]}, {t[2], t[3]}, {t[3], t[2]}, 1)),
      VOID_ROW(Write, 1, 2, "", at::_foreach_sqrt_({t[0], t[1]})),
      ROW(Shape, 2, 1, "", t[0].t_()),
      ROW(Shape, 1, 1, "d", t[0].transpose_(i[0], -1)),
      ROW(Shape, 1, 1, "d", t[0].unsqueeze_(i[0])),
      ROW(Shape, 1, 1, "", t[0].squeeze_()),
      ROW(Shape, 1, 1, "", t[0].requires_grad_()),
      ROW(Shape, 1, 1, "", t[0].detach_()),
  };
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> found = value_rows();
    for (const auto& more : {view_rows(), write_rows(), state_rows()})
      found.insert(found.end(), more.begin(), more.end());
    return found;
  }();
  return all;
}

}  // namespace tandem::fuzz
