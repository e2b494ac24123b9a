/// What code of Python's mentions.
#pragma once

#include "ran_code.h"

namespace tandem::python {

/// Names of variables that are looked for among globals; those of inner functions and comprehensions as well.
std::vector<PyObject*> global_names(PyObject* code);

/// Names of attributes, and strings that may be such; those of inner functions and comprehensions as well.
std::vector<PyObject*> attribute_names(PyObject* code);

/// Whether it asks objects of the user's for attributes by names that are not in its text.
bool computes_names(const RanCode& code);

}  // namespace tandem::python
