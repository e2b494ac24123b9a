#include "trace/symbols.h"

#include <c10/core/GradMode.h>

#include "base/host.h"
#include "ops/numbers.h"
#include "trace/tracer.h"

namespace tandem {
namespace {

/// Kernels must not take it for a tensor that decides about dtypes.
at::Tensor as_number(at::Tensor fake) {
  fake.unsafeGetTensorImpl()->set_wrapped_number(true);
  as_fake(fake)->meta.unsafeGetTensorImpl()->set_wrapped_number(true);
  Tracer::current()->note_symbols();
  return fake;
}

}  // namespace

at::Tensor read_number(const at::Tensor& tensor) {
  if (!Tracer::current() || tensor.numel() != 1 || !at::isFloatingType(tensor.scalar_type())) return {};
  at::NoGradGuard no_grad;
  return as_number(number_in(tensor));
}

at::Tensor compute_number(const std::string& operation, const at::Tensor& left, const at::Tensor& right) {
  at::NoGradGuard no_grad;
  return as_number(computed(operation, left, right));
}

at::Tensor behind_symbol(const c10::IValue& argument) {
  return argument.isSymFloat() && symbol_in_host() ? symbol_in_host()(argument) : at::Tensor();
}

}  // namespace tandem
