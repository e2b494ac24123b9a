#include "shapes/rules/helpers.h"

#include <ATen/ExpandUtils.h>

namespace tandem::rules {
namespace {

constexpr int64_t no_reduction = 0;  // at::Reduction::None

/// Of two tensors that broadcast, reduced or not; `Reduction` is the place of that argument.
template <int Reduction>
void pair_loss(ShapeCall& call) {
  const at::Tensor &self = call.tensor(0), &target = call.tensor(1);
  if (call.integer(Reduction) != no_reduction) return call.give(scalar(self.scalar_type()));
  // Begins with an empty tensor like the input, which is laid out anew only where the target broadcasts it.
  bool fits = self.sizes() == at::infer_size(self.sizes(), target.sizes());
  call.give(fits ? like(self) : iterated(self.scalar_type(), {&self, &target}));
}

/// Computed from the target's side first, which decides dtype and layout.
void logits_loss(ShapeCall& call) {
  const at::Tensor &self = call.tensor(0), &target = call.tensor(1);
  at::ScalarType dtype = target.scalar_type();
  if (call.integer(4) != no_reduction) return call.give(scalar(dtype));
  at::Tensor from_target = like(target);
  call.give(iterated(dtype, {&from_target, &self}));
}

template <int Reduction>
void like_input_loss(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  call.give(call.integer(Reduction) == no_reduction ? like(self) : scalar(self.scalar_type()));
}

void contiguous_gradient(ShapeCall& call) { call.give(contiguous_like(call.tensor(1))); }
/// The kernels begin with zeros like the input, which are laid out anew where the others broadcast it.
/// Whether they take several dtypes is theirs to say.
void contiguous_gradient_of_pair(ShapeCall& call) {
  const at::Tensor &output_gradient = call.tensor(0), &self = call.tensor(1), &target = call.tensor(2);
  if (self.scalar_type() != target.scalar_type() || self.scalar_type() != output_gradient.scalar_type())
    return;
  if (self.sizes() == at::infer_size(at::infer_size(self.sizes(), target.sizes()), output_gradient.sizes()))
    contiguous_gradient(call);
  else
    call.give(iterated(self.scalar_type(), {&self, &target, &output_gradient}));
}
/// Operands that broadcast are left to the kernel itself: CPU and CUDA differ there.
void gradient(ShapeCall& call) {
  if (call.tensor(1).sizes() == call.tensor(2).sizes()) call.give(like(call.tensor(1)));
}

void nll_loss2d(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  TORCH_CHECK(
      self.dim() == 4,
      "only batches of spatial inputs supported (4D tensors), but got input of dimension: ", self.dim());
  if (call.integer(3) == no_reduction)
    call.give(make_meta({self.size(0), self.size(2), self.size(3)}, self.scalar_type()));
  else
    call.give(scalar(self.scalar_type()));
  call.give(scalar(self.scalar_type()));
}

/// One number for each row of the input, or for all of them.
at::Tensor row_loss(const at::Tensor& self, int64_t reduction, bool rows) {
  return reduction == no_reduction && rows ? make_meta({self.size(0)}, self.scalar_type())
                                           : scalar(self.scalar_type());
}

void multi_margin(ShapeCall& call) {
  call.give(row_loss(call.tensor(0), call.integer(5), call.tensor(1).dim() > 0));
}

void multilabel_margin(ShapeCall& call) {
  call.give(row_loss(call.tensor(0), call.integer(2), call.tensor(1).dim() > 1));
  call.give(make_meta(call.tensor(1).sizes(), call.tensor(0).scalar_type()));
}

constexpr Row losses_rows[] = {
    {"aten::huber_loss", pair_loss<2>},
    {"aten::binary_cross_entropy", like_input_loss<3>},
    {"aten::binary_cross_entropy_with_logits", logits_loss},
    {"aten::mse_loss_backward", contiguous_gradient_of_pair},
    {"aten::huber_loss_backward", contiguous_gradient_of_pair},
    {"aten::smooth_l1_loss_backward", contiguous_gradient_of_pair},
    {"aten::binary_cross_entropy_backward", gradient},
    {"aten::nll_loss2d_forward", nll_loss2d},
    {"aten::nll_loss2d_backward", contiguous_gradient},
    {"aten::multi_margin_loss", multi_margin},
    {"aten::multi_margin_loss_backward", contiguous_gradient},
    {"aten::multilabel_margin_loss_forward", multilabel_margin},
    {"aten::multilabel_margin_loss_backward", contiguous_gradient},
    {"aten::_ctc_loss_backward", contiguous_gradient},
};

}  // namespace

std::span<const Row> losses() { return losses_rows; }

}  // namespace tandem::rules
