/// Whose something of Python's is: the user's, or torch's and Python's own.
#pragma once

#include "tree.h"

namespace tandem::python {

/// Names of modules: those of torch, NumPy, Tandem and Python's library are not the user's.
bool is_user_module_name(PyObject* name);
/// Torch's, NumPy's or Tandem's.
bool is_foreign_module_name(PyObject* name);
/// The `__name__` of a dict of globals, or null.
PyObject* module_name_of(PyObject* globals);

/// What torch's modules, optimisers and the like are: parts of torch that programs keep and change.
bool is_kept_part_of_torch(PyTypeObject* type);
/// Python's namespaces are objects with attributes although their type is no class statement's.
bool is_namespace(PyTypeObject* type);

PyTypeObject* type_named(const char* module, const char* name);

/// Numbers, strings and the like, which never change and hold nothing; modules are reached by name only.
bool is_constant(PyObject* object);

/// One of Python's random module or of NumPy's.
bool is_random_generator(PyObject* object);

/// Walks go nearest first, so that what is left out of a larger world lies farthest away.
constexpr size_t most_objects = 100'000;

/// The references that a value and what it holds have on objects.
class References {
 public:
  explicit References(PyObject* root);
  /// False where something else has the object as well.
  bool are_all_of(PyObject* object) const;

 private:
  static int note(PyObject* object, void* self);

  std::unordered_map<PyObject*, Py_ssize_t> counted_;
  std::vector<PyObject*> waiting_;
};

/// Where classes with __slots__ keep them.
std::vector<py::object> slots_of(PyTypeObject* type);

}  // namespace tandem::python
