/// What a Python function or module can see besides its arguments: modules and their parameters, closures, globals.
#pragma once

#include "tree.h"

namespace tandem::python {

/// The part of the surroundings that is read at every call, so that a change of it is noticed.
class Environment {
 public:
  /// `roots`: modules, and functions whose closures and globals count.
  explicit Environment(py::list roots);

  /// Writes train/eval, which modules, parameters, buffers and tensors there are, and the numbers and strings among attributes and variables.
  void write(Writer& to) const;

  /// The objects that `write` names by address.
  std::vector<py::object> named_objects() const;

  /// The tensors under the modules with their names: "parameter fc.weight".
  std::string name_of(const at::Tensor& tensor) const;

  const py::list& roots() const { return roots_; }

 private:
  py::list roots_;
};

/// All attributes and variables as they are now, to be put back when a traced function changed some.
class Surroundings {
 public:
  explicit Surroundings(const Environment& environment);
  /// Undoes what has changed; says what that was, or nothing.
  std::string restore() const;

 private:
  struct Kept {
    py::object container, copy;              ///< a dict or a list; a cell with its contents
    std::string owner;
  };
  void keep_module(const py::object& module, std::string name);
  void keep_container(const py::object& container, const std::string& owner);
  std::vector<Kept> kept_;
  std::vector<PyObject*> seen_;
};

}  // namespace tandem::python
