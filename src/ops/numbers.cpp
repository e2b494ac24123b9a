#include "ops/numbers.h"

#include <ATen/ScalarOps.h>
#include <torch/library.h>

#include <cmath>

namespace tandem {
namespace {

at::Tensor wrap(at::Tensor tensor) {
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

double divided(double left, double right) {
  TORCH_CHECK(right != 0, "float division by zero");
  return left / right;
}

/// Where Python raises an error or goes on with complex numbers, so must whoever calls.
double raised(double base, double exponent) {
  TORCH_CHECK(base != 0 || exponent >= 0, "0.0 cannot be raised to a negative power");
  TORCH_CHECK(base >= 0 || !std::isfinite(exponent) || exponent == std::floor(exponent),
              "a negative number is raised to a power that is no integer");
  const double power = std::pow(base, exponent);
  TORCH_CHECK(std::isfinite(power) || !std::isfinite(base) || !std::isfinite(exponent),
              "(34, 'Numerical result out of range')");
  return power;
}

double compute(std::string_view operation, double left, double right) {
  if (operation == "add") return left + right;
  if (operation == "sub") return left - right;
  if (operation == "mul") return left * right;
  if (operation == "div") return divided(left, right);
  TORCH_CHECK(operation == "pow", "tandem::compute knows no ", operation);
  return raised(left, right);
}

at::Tensor number_kernel(const at::Tensor& tensor) { return wrapped_number(tensor.item().toDouble()); }

at::Tensor compute_kernel(c10::string_view operation, const at::Tensor& left, const at::Tensor& right) {
  return wrapped_number(
      compute({operation.data(), operation.size()}, left.item().toDouble(), right.item().toDouble()));
}

at::Tensor number_shape() {
  return wrap(at::empty({}, at::TensorOptions().dtype(at::kDouble).device(at::kMeta)));
}

const c10::OperatorHandle& number_operator() {
  static const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow("tandem::number", "");
  return op;
}

const c10::OperatorHandle& compute_operator() {
  static const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow("tandem::compute", "");
  return op;
}

}  // namespace

TORCH_LIBRARY(tandem, library) {
  library.def("number(Tensor tensor) -> Tensor");
  library.def("compute(str operation, Tensor left, Tensor right) -> Tensor");
  library.impl("number", c10::DispatchKey::CompositeExplicitAutograd, number_kernel);
  library.impl("compute", c10::DispatchKey::CompositeExplicitAutograd, compute_kernel);
  library.impl("number", c10::DispatchKey::Meta, [](const at::Tensor&) { return number_shape(); });
  library.impl("compute", c10::DispatchKey::Meta,
               [](c10::string_view, const at::Tensor&, const at::Tensor&) { return number_shape(); });
}

at::Tensor number_in(const at::Tensor& tensor) {
  return number_operator().typed<at::Tensor(const at::Tensor&)>().call(tensor);
}

at::Tensor computed(const std::string& operation, const at::Tensor& left, const at::Tensor& right) {
  return compute_operator().typed<at::Tensor(c10::string_view, const at::Tensor&, const at::Tensor&)>().call(
      operation, left, right);
}

bool makes_number(const c10::OperatorHandle& op) {
  return op == number_operator() || op == compute_operator();
}

at::Tensor wrapped_number(double number) { return wrap(c10::scalar_to_tensor(number)); }

}  // namespace tandem
