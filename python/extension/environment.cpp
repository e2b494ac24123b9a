#include "environment.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

namespace tandem::python {
namespace {

PyTypeObject* module_type() {
  static PyObject* const type = imported("torch.nn", "Module");
  return reinterpret_cast<PyTypeObject*>(type);
}

bool is_module(PyObject* object) { return PyObject_TypeCheck(object, module_type()); }

/// Nothing where an object keeps its attributes elsewhere.
py::object attributes_of(PyObject* object) {
  auto attributes = py::reinterpret_steal<py::object>(PyObject_GetAttrString(object, "__dict__"));
  if (!attributes) PyErr_Clear();
  return attributes && PyDict_Check(attributes.ptr()) ? attributes : py::object();
}

/// An instance of a class of the user's, rather than a class, a function or a part of Python.
bool is_instance(PyObject* object) {
  return (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) && Py_TYPE(object)->tp_richcompare == PyBaseObject_Type.tp_richcompare && !PyType_Check(object) && !PyCallable_Check(object);
}

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

/// Names of globals that the function's code mentions; most are functions and modules of Python, which count as fixed.
py::list mentioned_globals(const py::object& function) {
  py::list names;
  py::dict globals = function.attr("__globals__");
  for (py::handle name : function.attr("__code__").attr("co_names"))
    if (globals.contains(name)) names.append(name);
  return names;
}

/// Writes surroundings into a key, and notes what was named by its address there.
class Walk {
 public:
  Walk(Writer& to, std::vector<py::object>* named) : to_(to), named_(named) {}

  void root(PyObject* object) {
    if (PyMethod_Check(object)) {
      root(PyMethod_GET_SELF(object));
      object = PyMethod_GET_FUNCTION(object);
    }
    if (is_module(object)) module(object);
    else if (PyFunction_Check(object)) function(object);
    else instance(object);
  }

 private:
  void function(PyObject* fn) {
    if (PyObject* cells = PyFunction_GET_CLOSURE(fn)) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cells); ++i) {
        if (to_.labels) to_.label("the variable " + text(py::handle(PyFunction_GET_CODE(fn)).attr("co_freevars")[py::int_(i)].ptr()));
        variable(PyCell_GET(PyTuple_GET_ITEM(cells, i)));
      }
    }
    PyObject* globals = PyFunction_GET_GLOBALS(fn);
    PyObject* names = reinterpret_cast<PyObject*>(PyFunction_GET_CODE(fn));
    py::object mentioned = py::reinterpret_steal<py::object>(PyObject_GetAttrString(names, "co_names"));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mentioned.ptr()); ++i) {
      if (to_.labels) to_.label("the global " + text(PyTuple_GET_ITEM(mentioned.ptr(), i)));
      variable(PyDict_GetItem(globals, PyTuple_GET_ITEM(mentioned.ptr(), i)));
    }
    if (to_.labels) to_.label("a default argument");
    for (PyObject* defaults : {PyFunction_GET_DEFAULTS(fn), PyFunction_GET_KW_DEFAULTS(fn)})
      if (defaults) value(defaults);
  }

  void instance(PyObject* object) {
    name('I', object);
    py::object attributes = attributes_of(object);
    PyObject *key, *item;
    for (Py_ssize_t at = 0; attributes && PyDict_Next(attributes.ptr(), &at, &key, &item);) {
      label("attribute ", key, object);
      if (is_module(item)) module(item);
      else value(item);
    }
    to_.key += '.';
  }

  /// Variables that hold functions and the like are the program itself.
  void variable(PyObject* object) {
    if (!object) to_.key += 'u';
    else if (is_module(object)) module(object);
    else if (is_instance(object)) instance(object);
    else if (THPVariable_Check(object)) to_.write_pointer('v', THPVariable_Unpack(object).unsafeGetTensorImpl());
    else if (!to_.write_constant(object)) to_.key += '-';
  }

  void module(PyObject* object) {
    static PyObject* const parameters = interned("_parameters");
    static PyObject* const buffers = interned("_buffers");
    static PyObject* const modules = interned("_modules");
    name('M', object);
    py::object attributes = py::reinterpret_steal<py::object>(PyObject_GenericGetDict(object, nullptr));
    PyObject *key, *item, *children = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(attributes.ptr(), &at, &key, &item);) {
      label("attribute ", key, object);
      if (key == modules) children = item;
      else if (key == parameters || key == buffers) tensors(item, object);
      else value(item);
    }
    if (!children) return;
    for (Py_ssize_t at = 0; PyDict_Next(children, &at, &key, &item);) {
      label("module ", key, object);
      if (item != Py_None) module(item);
      else to_.key += 'N';
    }
    to_.key += '.';
  }

  void tensors(PyObject* dict, PyObject* owner) {
    PyObject *key, *item;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &item);) {
      label("tensor ", key, owner);
      if (THPVariable_Check(item)) {
        to_.write_pointer('v', THPVariable_Unpack(item).unsafeGetTensorImpl());
        to_.check_class(item, "a parameter or buffer");
      } else {
        to_.key += 'N';
      }
    }
    to_.key += ';';
  }

  /// Attributes: numbers by value, tensors and others by identity, containers one level deep.
  void value(PyObject* object, int depth = 0) {
    if (THPVariable_Check(object)) return to_.write_pointer('v', THPVariable_Unpack(object).unsafeGetTensorImpl());
    if (to_.write_constant(object)) return;
    if (depth < 3 && (PyTuple_Check(object) || PyList_Check(object))) {
      Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
      to_.write_simple('L', &size, sizeof size);
      for (Py_ssize_t i = 0; i < size; ++i) value(PySequence_Fast_GET_ITEM(object, i), depth + 1);
    } else if (depth < 3 && PyDict_Check(object)) {
      PyObject *key, *item;
      to_.key += 'D';
      for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &item);) value(key, depth + 1), value(item, depth + 1);
      to_.key += '.';
    } else {
      name('o', object);
    }
  }

  static std::string text(PyObject* name) { return PyUnicode_Check(name) ? py::str(py::handle(name)) : py::str("?"); }

  void label(const char* what, PyObject* name, PyObject* owner) {
    if (!to_.labels) return;
    std::string_view type = Py_TYPE(owner)->tp_name;
    to_.label(what + text(name) + " of class " + std::string(type.substr(type.rfind('.') + 1)));
  }

  void name(char tag, PyObject* object) {
    to_.write_pointer(tag, object);
    if (named_) named_->push_back(py::reinterpret_borrow<py::object>(object));
  }

  Writer& to_;
  std::vector<py::object>* named_;
};

template <class Visit>
void for_each_module(const py::object& module, const std::string& prefix, Visit&& visit) {
  visit(module, prefix);
  for (auto [name, child] : py::dict(module.attr("_modules")))
    if (!child.is_none()) for_each_module(py::reinterpret_borrow<py::object>(child), prefix + std::string(py::str(name)) + ".", visit);
}

}  // namespace

void Environment::write(Writer& to) const {
  Walk walk(to, nullptr);
  for (py::handle root : roots) walk.root(root.ptr());
  for (const py::object& object : objects) walk.root(object.ptr());
}

std::vector<py::object> Environment::named_objects() const {
  std::vector<py::object> named;
  Interned interned;
  Writer ignored(interned);
  Walk walk(ignored, &named);
  for (py::handle root : roots) walk.root(root.ptr());
  for (const py::object& object : objects) walk.root(object.ptr());
  return named;
}

std::string Environment::name_of(const at::Tensor& tensor) const {
  std::string found;
  auto look = [&](const py::object& module, const std::string& prefix) {
    for (auto [kind, dict] : {std::pair{"parameter ", "_parameters"}, {"buffer ", "_buffers"}})
      for (auto [name, item] : py::dict(module.attr(dict)))
        if (THPVariable_Check(item.ptr()) && THPVariable_Unpack(item.ptr()).is_same(tensor)) found = kind + prefix + std::string(py::str(name));
  };
  auto look_under = [&](py::handle object) {
    if (object && is_module(object.ptr())) for_each_module(py::reinterpret_borrow<py::object>(object), "", look);
  };
  auto look_around = [&](py::handle root) {
    look_under(root);
    if (PyMethod_Check(root.ptr())) look_under(PyMethod_GET_SELF(root.ptr()));
    if (!PyFunction_Check(root.ptr())) return;
    if (PyObject* cells = PyFunction_GET_CLOSURE(root.ptr()))
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cells); ++i) look_under(PyCell_GET(PyTuple_GET_ITEM(cells, i)));
    PyObject* globals = PyFunction_GET_GLOBALS(root.ptr());
    for (py::handle name : mentioned_globals(py::reinterpret_borrow<py::object>(root))) look_under(PyDict_GetItem(globals, name.ptr()));
  };
  for (py::handle root : roots) look_around(root);
  for (const py::object& object : objects) look_around(object);
  return found;
}

}  // namespace tandem::python
