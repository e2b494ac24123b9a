/// Numbers of the graph, which the program that is traced holds as symbols of its language.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>

#include "base/for_python.h"

namespace tandem {

/// What `tensor.item()` gives, as a fake: a number which the program may compute with and hand to operators;
/// whoever asks which number it is, looks at data. Undefined outside of traces, and for tensors that hold
/// anything else than one floating-point number.
TANDEM_FOR_PYTHON at::Tensor read_number(const at::Tensor& tensor);

/// One of the operations of tandem::compute on two of them, or on one and a wrapped number.
TANDEM_FOR_PYTHON at::Tensor compute_number(const std::string& operation, const at::Tensor& left,
                                            const at::Tensor& right);

/// The fake behind a symbol that an operator is given in the place of a number; undefined for constants.
at::Tensor behind_symbol(const c10::IValue& argument);

}  // namespace tandem
