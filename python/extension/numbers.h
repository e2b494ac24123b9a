/// Numbers that a program reads from tensors while it is traced: the Python side is tandem/_numbers.py.
#pragma once

#include <pybind11/pybind11.h>

namespace tandem::python {

void bind_numbers(pybind11::module_& m);

}  // namespace tandem::python
