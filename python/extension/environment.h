/// What a Python function or module can see besides its arguments: modules and their parameters, closures, globals.
#pragma once

#include "tree.h"

namespace tandem::python {

/// The part of the surroundings that is read at every call, so that a change of it is noticed. What it consists of: modules, functions whose closures and globals count, and
/// objects whose attributes do.
struct Environment {
  const py::list& roots;
  const std::vector<py::object>& objects;

  /// Writes train/eval, which modules, parameters, buffers and tensors there are, and the numbers and strings among attributes and variables.
  void write(Writer& to) const;

  /// The objects that `write` names by address.
  std::vector<py::object> named_objects() const;

  /// The user's name of a tensor under the modules ("parameter fc.weight"), or an empty string.
  std::string name_of(const at::Tensor& tensor) const;
};

}  // namespace tandem::python
