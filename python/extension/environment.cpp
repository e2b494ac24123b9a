#include "environment.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include "code_names.h"

namespace tandem::python {
namespace {

PyTypeObject* module_type() {
  static PyObject* const type = imported("torch.nn", "Module");
  return reinterpret_cast<PyTypeObject*>(type);
}

bool is_module(PyObject* object) { return PyObject_TypeCheck(object, module_type()); }

template <class Visit>
void for_each_module(const py::object& module, const std::string& prefix, Visit&& visit) {
  visit(module, prefix);
  for (auto [name, child] : py::dict(module.attr("_modules")))
    if (!child.is_none())
      for_each_module(py::reinterpret_borrow<py::object>(child), prefix + std::string(py::str(name)) + ".",
                      visit);
}

/// Each parameter and buffer of a module and those under it, with what the user calls it.
template <class Visit>
void for_each_tensor(py::handle object, Visit&& visit) {
  if (!object || !is_module(object.ptr())) return;
  for_each_module(
      py::reinterpret_borrow<py::object>(object), "",
      [&](const py::object& module, const std::string& prefix) {
        for (auto [kind, dict] : {std::pair{"parameter ", "_parameters"}, {"buffer ", "_buffers"}})
          for (auto [name, item] : py::dict(module.attr(dict)))
            if (THPVariable_Check(item.ptr())) visit(item.ptr(), kind, prefix, name);
      });
}

template <class Visit>
void for_each_tensor_around(py::handle root, Visit&& visit) {
  for_each_tensor(root, visit);
  if (PyMethod_Check(root.ptr())) for_each_tensor(PyMethod_GET_SELF(root.ptr()), visit);
  if (!PyFunction_Check(root.ptr())) return;
  PyObject* cells = PyFunction_GET_CLOSURE(root.ptr());
  for (Py_ssize_t i = 0; cells && i < PyTuple_GET_SIZE(cells); ++i)
    for_each_tensor(PyCell_GET(PyTuple_GET_ITEM(cells, i)), visit);
  PyObject* globals = PyFunction_GET_GLOBALS(root.ptr());
  for (PyObject* name : global_names(PyFunction_GET_CODE(root.ptr())))
    for_each_tensor(PyDict_GetItem(globals, name), visit);
}

template <class Visit>
void for_each_tensor_around(const Environment& environment, Visit&& visit) {
  for (py::handle root : environment.roots) for_each_tensor_around(root, visit);
  for (const py::object& object : environment.objects) for_each_tensor_around(object, visit);
}

}  // namespace

std::string Environment::name_of(const at::Tensor& tensor) const {
  std::string found;
  for_each_tensor_around(*this,
                         [&](PyObject* item, const char* kind, const std::string& prefix, py::handle name) {
                           if (THPVariable_Unpack(item).is_same(tensor))
                             found = kind + prefix + std::string(py::str(name));
                         });
  return found;
}

std::string Environment::odd_tensor() const {
  std::string found;
  for_each_tensor_around(*this, [&](PyObject* item, const char*, const std::string&, py::handle) {
    if (!is_plain_tensor(item))
      found = std::string("a parameter or buffer is a tensor subclass, ") + Py_TYPE(item)->tp_name;
  });
  return found;
}

}  // namespace tandem::python
