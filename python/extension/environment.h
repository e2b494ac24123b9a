/// The modules around a Python function: its own, those of its closure and of globals that it mentions.
#pragma once

#include "tree.h"

namespace tandem::python {

/// Where to look for modules: modules, methods and functions, and objects that were given.
struct Environment {
  const py::list& roots;
  const std::vector<py::object>& objects;

  /// The user's name of a tensor under the modules ("parameter fc.weight"), or an empty string.
  std::string name_of(const at::Tensor& tensor) const;

  /// Why programs with a parameter or buffer of these modules are not compiled: its class may change what
  /// operators do. Empty when there is none.
  std::string odd_tensor() const;
};

}  // namespace tandem::python
