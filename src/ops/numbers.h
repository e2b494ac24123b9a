/// Numbers that a program reads from tensors and computes with: tensors without dimensions in the graph,
/// which kernels take for the numbers that they hold.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

#include "base/for_python.h"

namespace tandem {

/// tandem::number: what `item()` of a tensor gives, as a double.
at::Tensor number_in(const at::Tensor& tensor);

/// tandem::compute: "add", "sub", "mul", "div" or "pow" of two numbers, as Python computes it.
at::Tensor computed(const std::string& operation, const at::Tensor& left, const at::Tensor& right);

/// Whether an operator is one of these.
bool makes_number(const c10::OperatorHandle& op);

/// A number in the form in which libtorch hands it to operators that take tensors.
TANDEM_FOR_PYTHON at::Tensor wrapped_number(double number);

}  // namespace tandem
