#include "numbers.h"

#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include "base/host.h"
#include "ops/numbers.h"
#include "trace/symbols.h"

namespace tandem::python {
namespace {

namespace py = pybind11;

using Operand = std::variant<double, at::Tensor>;

at::Tensor as_tensor(const Operand& operand) {
  const auto* constant = std::get_if<double>(&operand);
  return constant ? wrapped_number(*constant) : std::get<at::Tensor>(operand);
}

/// torch wraps symbols in nodes of its own, and passes them to operators that take tensors as some other
/// number with a note of which one it meant.
py::object node_behind(const c10::IValue& argument) {
  if (argument.isTensor()) {
    const py::object tensor = py::reinterpret_steal<py::object>(THPVariable_Wrap(argument.toTensor()));
    const py::object meant = py::getattr(tensor, "_wrapped_number", py::none());
    return meant.is_none() ? meant : py::object(meant.attr("node"));
  }
  const auto* node =
      dynamic_cast<const torch::impl::PythonSymNodeImpl*>(argument.toSymFloat().toSymNodeImplUnowned());
  return node ? py::reinterpret_borrow<py::object>(node->getPyObj()) : py::object(py::none());
}

at::Tensor number_behind(const c10::IValue& argument) {
  py::gil_scoped_acquire gil;
  const py::object number = py::getattr(node_behind(argument), "number", py::none());
  return number.is_none() ? at::Tensor() : py::cast<at::Tensor>(number);
}

std::optional<at::Tensor> read(const at::Tensor& tensor) {
  const at::Tensor number = read_number(tensor);
  return number.defined() ? std::optional(number) : std::nullopt;
}

}  // namespace

void bind_numbers(py::module_& m) {
  symbol_in_host() = number_behind;
  m.def("read_number", read,
        "What item() gives in the trace that this thread is in, as a number of its graph; None elsewhere, "
        "and of what is not one floating-point number.");
  m.def(
      "compute_number",
      [](const std::string& operation, const Operand& left, const Operand& right) {
        return compute_number(operation, as_tensor(left), as_tensor(right));
      },
      "add, sub, mul, div or pow of such numbers and constants.");
}

}  // namespace tandem::python
