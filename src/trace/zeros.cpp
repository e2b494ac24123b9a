#include "trace/zeros.h"

#include "ops/facts.h"
#include "trace/engine_sums.h"
#include "trace/tracer.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>

#include <limits>
#include <map>

namespace tandem {
namespace {

bool is_zero(const at::Tensor& tensor) {
  const FakeImpl* fake = tensor.defined() ? as_fake(tensor) : nullptr;
  return fake && fake->zero;
}

bool has_zero(const c10::IValue& argument) {
  if (argument.isTensor()) return is_zero(argument.toTensor());
  if (!argument.isTensorList()) return false;
  const auto list = argument.toTensorVector();
  return std::any_of(list.begin(), list.end(), is_zero);
}

/// Of what two operands give: their sizes broadcast, the dtype that they promote to.
struct Described {
  std::vector<int64_t> sizes;
  at::TensorOptions options;

  Described(const at::Tensor& a, const at::Tensor& b)
      : sizes(at::infer_size(a.sizes(), b.sizes())),
        options(at::TensorOptions()
                    .dtype(at::result_type(a, b))
                    .device(a.device().is_cpu() ? b.device() : a.device())) {}
  at::Tensor zero() const { return at::_efficientzerotensor(sizes, options); }
  at::Tensor full(double value) const { return at::full(sizes, value, options); }
  at::Tensor copy_of(const at::Tensor& tensor) const { return at::_to_copy(tensor.expand(sizes), options); }
};

using Arguments = c10::ArrayRef<c10::IValue>;

at::Tensor product(Arguments given) { return Described(given[0].toTensor(), given[1].toTensor()).zero(); }
at::Tensor inner_product(Arguments given) {
  return at::_efficientzerotensor({}, given[0].toTensor().options());
}
at::Tensor multiple(Arguments given) {
  const at::Tensor self = given[0].toTensor();
  return at::_efficientzerotensor(self.sizes(),
                                  self.options().dtype(at::result_type(self, given[1].toScalar())));
}

at::Tensor quotient(Arguments given) {
  const at::Tensor self = given[0].toTensor(), other = given[1].toTensor();
  Described result(self, other);
  if (c10::isIntegralType(at::typeMetaToScalarType(result.options.dtype()), /*includeBool=*/true))
    result.options = result.options.dtype(at::get_default_dtype_as_scalartype());
  if (!is_zero(self)) return result.full(std::numeric_limits<double>::infinity());
  return is_zero(other) ? result.full(std::numeric_limits<double>::quiet_NaN()) : result.zero();
}

at::Tensor sum_with(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  const Described result(self, other);
  if (!is_zero(self)) return result.copy_of(self);
  if (is_zero(other)) return result.zero();
  at::Tensor copy = result.copy_of(other);
  return alpha.equal(1) ? copy : copy.mul(alpha);
}
at::Tensor sum(Arguments given) {
  return sum_with(given[0].toTensor(), given[1].toTensor(), given[2].toScalar());
}
at::Tensor difference(Arguments given) {
  return sum_with(given[0].toTensor(), given[1].toTensor(), -given[2].toScalar());
}

using Answer = at::Tensor (*)(Arguments);

/// In place zeros without memory are added like others: -0 becomes 0.
bool is_sum_in_place(const c10::OperatorHandle& op, Arguments given) {
  return full_name(op) == "aten::add.Tensor" && engine_adds_into(given[0].toTensor());
}

Answer find_answer(const c10::OperatorHandle& op) {
  static const std::map<std::string, Answer> answers = {
      {"aten::mul.Tensor", product},   {"aten::mul.Scalar", multiple}, {"aten::dot", inner_product},
      {"aten::vdot", inner_product},   {"aten::div.Tensor", quotient}, {"aten::add.Tensor", sum},
      {"aten::sub.Tensor", difference}};
  const auto found = answers.find(full_name(op));
  return found == answers.end() ? nullptr : found->second;
}

}  // namespace

at::Tensor Tracer::as_zero(at::Tensor fake) {
  as_fake(fake)->zero = met_zeros_ = true;
  return fake;
}

bool answer_for_zeros(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const size_t count = op.schema().arguments().size();
  const Arguments given(stack.data() + stack.size() - count, count);
  if (std::none_of(given.begin(), given.end(), has_zero)) return false;
  if (!facts(op).changes_metadata)
    for (int written : facts(op).written)
      TORCH_CHECK(!has_zero(given[size_t(written)]),
                  "ZeroTensors are immutable. Please use the materialized zero tensor obtained using "
                  ".clone() if you want a mutable tensor.");
  const Answer answer = find_answer(op);
  if (!answer || is_sum_in_place(op, given)) return false;
  at::Tensor result = answer(given);
  torch::jit::drop(stack, count);
  stack.emplace_back(std::move(result));
  return true;
}

}  // namespace tandem
