#include "contents.h"

#include <torch/csrc/Device.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <bit>

namespace tandem::python {
namespace {

py::object held(PyObject* object) { return py::reinterpret_borrow<py::object>(object); }

PyTypeObject* deque_type() {
  static PyObject* const type = imported("collections", "deque");
  return reinterpret_cast<PyTypeObject*>(type);
}

/// A method of a type itself, whatever a class of the user's made of it.
py::object call_of(PyTypeObject* type, const char* method, PyObject* object) {
  return held(reinterpret_cast<PyObject*>(type)).attr(method)(held(object));
}

void read_list(PyObject* list, Contents& to) {
  to.values.reserve(size_t(PyList_GET_SIZE(list)));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) to.values.push_back(held(PyList_GET_ITEM(list, i)));
}

py::list as_list(const std::vector<py::object>& values) {
  py::list list(values.size());
  for (size_t i = 0; i < values.size(); ++i) list[i] = values[i];
  return list;
}

void read_dict(PyObject* dict, Contents& to) {
  PyObject *name, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &name, &value);) {
    to.names.push_back(held(name));
    to.values.push_back(held(value));
  }
}

/// Its order is not that of the dict below it.
void read_ordered_dict(PyObject* dict, Contents& to) {
  if (PyDict_GET_SIZE(dict) == 0) return;
  for (py::handle item : py::list(call_of(&PyODict_Type, "items", dict))) {
    to.names.push_back(held(PyTuple_GET_ITEM(item.ptr(), 0)));
    to.values.push_back(held(PyTuple_GET_ITEM(item.ptr(), 1)));
  }
}

/// Names with two underlines are Python's own, some of which it fills in when they are first asked for.
void read_class(PyObject* type, Contents& to) {
  PyObject *name, *value;
  for (Py_ssize_t at = 0; PyDict_Next(reinterpret_cast<PyTypeObject*>(type)->tp_dict, &at, &name, &value);) {
    if (PyUnicode_Check(name) && PyUnicode_GET_LENGTH(name) > 1 && PyUnicode_READ_CHAR(name, 0) == '_' &&
        PyUnicode_READ_CHAR(name, 1) == '_')
      continue;
    to.names.push_back(held(name));
    to.values.push_back(held(value));
  }
}

py::object read_slot(PyObject* descriptor, PyObject* object) {
  auto value = py::reinterpret_steal<py::object>(
      Py_TYPE(descriptor)->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(Py_TYPE(object))));
  if (!value) PyErr_Clear();
  return value;
}

void check(int status) {
  if (status != 0) throw py::error_already_set();
}

void write_class(PyObject* type, const Contents& contents) {
  auto set = PyType_Type.tp_setattro;
  Contents now = read_contents(Holder::Class, type);
  for (size_t i = 0; i < contents.names.size(); ++i)
    check(set(type, contents.names[i].ptr(), contents.values[i].ptr()));
  for (const py::object& name : now.names)
    if (std::none_of(contents.names.begin(), contents.names.end(),
                     [&](const py::object& old) { return old.is(name); }))
      check(set(type, name.ptr(), nullptr));
}

void write_variable(PyObject* globals, PyObject* name, PyObject* value) {
  if (value)
    check(PyDict_SetItem(globals, name, value));
  else if (PyDict_Contains(globals, name) == 1)
    check(PyDict_DelItem(globals, name));
}

void write_slot(PyObject* object, PyObject* descriptor, PyObject* value) {
  if (!value && !read_slot(descriptor, object)) return;
  check(Py_TYPE(descriptor)->tp_descr_set(descriptor, object, value));
}

void write_items(PyTypeObject* type, const char* add, PyObject* object, const Contents& contents) {
  call_of(type, "clear", object);
  held(reinterpret_cast<PyObject*>(type)).attr(add)(held(object), as_list(contents.values));
}

}  // namespace

std::optional<Holder> container_kind(PyObject* object) {
  if (PyODict_Check(object)) return Holder::OrderedDict;
  if (PyDict_Check(object)) return Holder::Dict;
  if (PyList_Check(object)) return Holder::List;
  if (PySet_Check(object)) return Holder::Set;
  if (PyObject_TypeCheck(object, deque_type())) return Holder::Deque;
  if (PyCell_Check(object)) return Holder::Cell;
  return std::nullopt;
}

Contents read_contents(Holder kind, PyObject* object, const std::vector<py::object>& which) {
  Contents contents;
  switch (kind) {
    case Holder::Dict:
      read_dict(object, contents);
      break;
    case Holder::OrderedDict:
      read_ordered_dict(object, contents);
      break;
    case Holder::List:
      read_list(object, contents);
      break;
    case Holder::Set:
      read_list(py::list(call_of(&PySet_Type, "__iter__", object)).ptr(), contents);
      break;
    case Holder::Deque:
      read_list(py::list(call_of(deque_type(), "__iter__", object)).ptr(), contents);
      break;
    case Holder::Class:
      read_class(object, contents);
      break;
    case Holder::Cell:
      contents.values.push_back(py::reinterpret_steal<py::object>(PyCell_Get(object)));
      break;
    case Holder::Variable:
      for (const py::object& name : which)
        contents.values.push_back(held(PyDict_GetItem(object, name.ptr())));
      contents.names = which;
      break;
    case Holder::Slots:
      for (const py::object& descriptor : which)
        contents.values.push_back(read_slot(descriptor.ptr(), object));
      contents.names = which;
      break;
  }
  return contents;
}

void write_contents(Holder kind, PyObject* object, const Contents& contents) {
  auto each = [&](auto&& write) {
    for (size_t i = 0; i < contents.names.size(); ++i)
      write(contents.names[i].ptr(), contents.values[i].ptr());
  };
  switch (kind) {
    case Holder::Dict:
      PyDict_Clear(object);
      each([&](PyObject* name, PyObject* value) { check(PyDict_SetItem(object, name, value)); });
      break;
    case Holder::OrderedDict:
      call_of(&PyODict_Type, "clear", object);
      each([&](PyObject* name, PyObject* value) { check(PyODict_SetItem(object, name, value)); });
      break;
    case Holder::List:
      check(PyList_SetSlice(object, 0, PyList_GET_SIZE(object), as_list(contents.values).ptr()));
      break;
    case Holder::Set:
      write_items(&PySet_Type, "update", object, contents);
      break;
    case Holder::Deque:
      write_items(deque_type(), "extend", object, contents);
      break;
    case Holder::Class:
      write_class(object, contents);
      break;
    case Holder::Cell:
      PyCell_Set(object, contents.values[0].ptr());
      break;
    case Holder::Variable:
      each([&](PyObject* name, PyObject* value) { write_variable(object, name, value); });
      break;
    case Holder::Slots:
      each([&](PyObject* descriptor, PyObject* value) { write_slot(object, descriptor, value); });
      break;
  }
}

void write_value(Holder kind, PyObject* object, const Contents& contents, size_t position, PyObject* value) {
  PyObject* name = contents.names.empty() ? nullptr : contents.names[position].ptr();
  switch (kind) {
    case Holder::Dict:
    case Holder::Variable:
      return check(PyDict_SetItem(object, name, value));
    case Holder::OrderedDict:
      return check(PyODict_SetItem(object, name, value));
    case Holder::Slots:
      return write_slot(object, name, value);
    case Holder::Class:
      return check(PyType_Type.tp_setattro(object, name, value));
    case Holder::Cell:
      return check(PyCell_Set(object, value));
    case Holder::List:
      return check(PyList_SetSlice(object, Py_ssize_t(position), Py_ssize_t(position) + 1,
                                   py::make_tuple(held(value)).ptr()));
    default:
      return check(PySequence_SetItem(object, Py_ssize_t(position), value));
  }
}

bool are_same(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (!a || !b || Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a))
    return std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(a)) == std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(b));
  if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a) || PyBytes_CheckExact(a) || THPDevice_Check(a))
    return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
  if (PyMethod_Check(a))
    return PyMethod_GET_FUNCTION(a) == PyMethod_GET_FUNCTION(b) &&
           PyMethod_GET_SELF(a) == PyMethod_GET_SELF(b);
  if (!PyTuple_Check(a) || PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
    if (!are_same(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
  return true;
}

bool holds_still(Holder kind, PyObject* object, const Contents& then) {
  const size_t size = then.values.size();
  switch (kind) {
    case Holder::OrderedDict:
      return size == 0 && PyDict_GET_SIZE(object) == 0;
    case Holder::Dict: {
      if (size_t(PyDict_GET_SIZE(object)) != size) return false;
      PyObject *name, *value;
      size_t i = 0;
      for (Py_ssize_t at = 0; PyDict_Next(object, &at, &name, &value); ++i)
        if (i >= size || name != then.names[i].ptr() || value != then.values[i].ptr()) return false;
      return true;
    }
    case Holder::List:
      for (size_t i = 0; i < size; ++i)
        if (size_t(PyList_GET_SIZE(object)) != size ||
            PyList_GET_ITEM(object, Py_ssize_t(i)) != then.values[i].ptr())
          return false;
      return size_t(PyList_GET_SIZE(object)) == size;
    case Holder::Cell:
      return PyCell_GET(object) == then.values[0].ptr();
    case Holder::Variable:
      for (size_t i = 0; i < size; ++i)
        if (PyDict_GetItem(object, then.names[i].ptr()) != then.values[i].ptr()) return false;
      return true;
    default:
      return false;
  }
}

std::optional<size_t> first_difference(const Contents& now, const Contents& then) {
  const size_t size = std::min(now.values.size(), then.values.size());
  for (size_t i = 0; i < size; ++i)
    if ((!now.names.empty() && !are_same(now.names[i].ptr(), then.names[i].ptr())) ||
        !are_same(now.values[i].ptr(), then.values[i].ptr()))
      return i;
  return now.values.size() == then.values.size() ? std::nullopt : std::optional(size);
}

}  // namespace tandem::python
