#include "shapes/rules/helpers.h"

#include <ATen/WrapDimUtils.h>

namespace tandem::rules {
namespace {

void all_same(ShapeCall& call) { call.give(scalar(call.tensor(0).scalar_type())); }
void all_accumulated(ShapeCall& call) { call.give(scalar(accumulated(call.tensor(0).scalar_type()))); }
void all_product(ShapeCall& call) {
  call.give(scalar(dtype_or(call, 1, accumulated(call.tensor(0).scalar_type()))));
}
/// libtorch's own rule says {0}.
void number_is_in(ShapeCall& call) { call.give(scalar(at::kBool)); }
void all_extremes(ShapeCall& call) {
  all_same(call);
  all_same(call);
}

/// Vectors that do not fit are left to the kernel, whose error is eager's.
void dot(ShapeCall& call) {
  const at::Tensor &a = call.tensor(0), &b = call.tensor(1);
  if (a.dim() == 1 && a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type()) all_same(call);
}

/// Values and where they were found, for operators (self, dim, keepdim) with those arguments at given places.
template <int Dim, int Keep>
void with_places(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  int64_t dim = call.integer(Dim);
  Dims sizes = reduced(self.sizes(), dim, call.boolean(Keep));
  call.give(make_meta(sizes, self.scalar_type()));
  call.give(make_meta(sizes, at::kLong));
}

void extremes(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  int64_t dim = call.integer(1);
  Dims sizes = reduced(self.sizes(), dim, call.boolean(2));
  for (int i = 0; i < 2; ++i) call.give(make_meta(sizes, self.scalar_type()));
}

void running_extremes(ShapeCall& call) {
  at::maybe_wrap_dim(call.integer(1), call.tensor(0).dim());
  call.give(contiguous_like(call.tensor(0)));
  call.give(make_meta(call.tensor(0).sizes(), at::kLong));
}

void running_logsumexp(ShapeCall& call) {
  at::maybe_wrap_dim(call.integer(1), call.tensor(0).dim());
  call.give(contiguous_like(call.tensor(0)));
}

void variance(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  call.give(make_meta(reduced(self.sizes(), optional_integers(call, 1), call.boolean(3)),
                      c10::toRealValueType(self.scalar_type())));
}

void variance_and_mean(ShapeCall& call) {
  variance(call);
  call.give(make_meta(call.results[0].toTensor().sizes(), call.tensor(0).scalar_type()));
}

void logsumexp(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  call.give(
      make_meta(reduced(self.sizes(), call.integers(1), call.boolean(2)), floating(self.scalar_type())));
}

void sum_of_numbers(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  call.give(make_meta(reduced(self.sizes(), optional_integers(call, 1), call.boolean(2)),
                      dtype_or(call, 3, accumulated(self.scalar_type()))));
}

void sum_of_powers(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  call.give(make_meta(reduced(self.sizes(), optional_integers(call, 2), call.boolean(3)),
                      dtype_or(call, 4, c10::toRealValueType(self.scalar_type()))));
}

void count_all(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  if (call.arguments[1].isNone()) return call.give(scalar(at::kLong));
  int64_t dim = call.integer(1);
  call.give(make_meta(reduced(self.sizes(), dim, false), at::kLong));
}

void count_along(ShapeCall& call) {
  call.give(make_meta(reduced(call.tensor(0).sizes(), call.integers(1), false), at::kLong));
}

void safe_softmax(ShapeCall& call) {
  call.give(make_meta(call.tensor(0).sizes(), dtype_or(call, 2, call.tensor(0).scalar_type())));
}

constexpr Row reductions_rows[] = {
    {"aten::max", all_same},
    {"aten::min", all_same},
    {"aten::median", all_same},
    {"aten::nanmedian", all_same},
    {"aten::isin.Scalar_Tensor", number_is_in},
    {"aten::trace", all_accumulated},
    {"aten::dot", dot},
    {"aten::vdot", dot},
    {"aten::prod", all_product},
    {"aten::_aminmax", all_extremes},
    {"aten::_aminmax.dim", extremes},
    {"aten::median.dim", with_places<1, 2>},
    {"aten::nanmedian.dim", with_places<1, 2>},
    {"aten::mode", with_places<1, 2>},
    {"aten::kthvalue", with_places<2, 3>},
    {"aten::cummax", running_extremes},
    {"aten::cummin", running_extremes},
    {"aten::logcumsumexp", running_logsumexp},
    {"aten::_logcumsumexp", running_logsumexp},
    {"aten::var.correction", variance},
    {"aten::std.correction", variance},
    {"aten::var_mean.correction", variance_and_mean},
    {"aten::std_mean.correction", variance_and_mean},
    {"aten::logsumexp", logsumexp},
    {"aten::nansum", sum_of_numbers},
    {"aten::linalg__powsum", sum_of_powers},
    {"aten::count_nonzero", count_all},
    {"aten::count_nonzero.dim_IntList", count_along},
    {"aten::_safe_softmax", safe_softmax},
};

}  // namespace

std::span<const Row> reductions() { return reductions_rows; }

}  // namespace tandem::rules
