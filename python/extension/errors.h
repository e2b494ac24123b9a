/// How Tandem's errors and places look in Python.
#pragma once

#include <pybind11/pybind11.h>

namespace tandem::python {

/// Adds tandem.Error and its children to the module; from then on errors name lines of Python programs.
void bind_errors(pybind11::module_& module);

}  // namespace tandem::python
