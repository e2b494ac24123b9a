#include "tree.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <structmember.h>

#include <algorithm>

#include "ownership.h"

namespace tandem::python {
namespace {

PyObject* registered_types() {
  static PyObject* const types = imported("torch.utils._pytree", "SUPPORTED_NODES");
  return types;
}

PyObject* symbolic_int() {
  static PyObject* const type = imported("torch", "SymInt");
  return type;
}

bool has_attribute(PyTypeObject* type, const char* name) {
  return PyObject_HasAttrString(reinterpret_cast<PyObject*>(type), name) == 1;
}

py::object type_of(PyObject* object) { return borrowed(reinterpret_cast<PyObject*>(Py_TYPE(object))); }

}  // namespace

bool is_class_of_tuples(PyTypeObject* type) {
  return type->tp_flags & Py_TPFLAGS_HEAPTYPE && type->tp_flags & Py_TPFLAGS_TUPLE_SUBCLASS &&
         !has_attribute(type, "n_sequence_fields");
}

bool is_plain_tensor(PyObject* tensor) {
  static PyObject* const parameter = imported("torch.nn", "Parameter");
  static PyObject* const buffer = imported("torch.nn", "Buffer");
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(tensor));
  return THPVariable_CheckExact(tensor) || type == parameter || type == buffer;
}

PyObject* imported(const char* module, const char* name) {
  return py::object(py::module_::import(module).attr(name)).release().ptr();
}

std::optional<uint64_t> Interned::number_of(PyObject* object) {
  // With its type: 1, True and an enum's 1 are equal to Python and not to a program.
  py::tuple typed = py::make_tuple(type_of(object), borrowed(object));
  PyObject* known = PyDict_GetItemWithError(numbers_.ptr(), typed.ptr());
  if (known) return PyLong_AsUnsignedLongLong(known);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return std::nullopt;
  }
  uint64_t number = numbers_.size();
  numbers_[typed] = number;
  return number;
}

void Writer::write_simple(char tag, const void* bytes, size_t size) {
  key += tag;
  key.append(static_cast<const char*>(bytes), size);
}

bool Writer::write_constant(PyObject* value) {
  if (value == Py_None) {
    key += 'N';
  } else if (PyBool_Check(value)) {
    key += value == Py_True ? '1' : '0';
  } else if (PyLong_CheckExact(value)) {
    int overflow = 0;
    int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) return false;
    write_simple('i', &number, sizeof number);
  } else if (PyFloat_CheckExact(value)) {
    double number = PyFloat_AS_DOUBLE(value);
    write_simple('f', &number, sizeof number);
  } else if (PyUnicode_CheckExact(value)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(value, &size);
    if (!text) {
      PyErr_Clear();
      return false;
    }
    write_simple('s', &size, sizeof size);
    key.append(text, size_t(size));
  } else {
    return false;
  }
  return true;
}

void Writer::write(PyObject* value, Shape* shape) {
  if (THPVariable_Check(value)) return write_tensor(value, shape);
  if (shape) shape->object = borrowed(value);
  if (write_constant(value)) return;
  if (Py_EnterRecursiveCall(" while a compiled function read its arguments")) throw py::error_already_set();
  struct Leave {
    ~Leave() { Py_LeaveRecursiveCall(); }
  } leave;
  if (given && write_given(value, shape)) return;
  if (PyList_CheckExact(value) || PyTuple_Check(value)) return write_sequence(value, shape);
  if (PyDict_CheckExact(value)) return write_dict(value, shape);
  if (write_registered(value, shape) || write_dataclass(value, shape) ||
      (given && write_made_object(value, shape)))
    return;
  if (PySlice_Check(value)) return write_slice(value);
  if (PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(symbolic_int()))) {
    py::int_ number(borrowed(value));
    if (shape) shape->object = number;
    write_constant(number.ptr());
    return;
  }
  write_opaque(value);
}

void Writer::write_tensor(PyObject* value, Shape* shape) {
  if (!is_plain_tensor(value))
    eager_reason = std::string("an argument is a tensor subclass, ") + Py_TYPE(value)->tp_name;
  key += 'T';
  tensors.push_back(THPVariable_Unpack(value));
  if (names) names->push_back(path);
  if (shape) shape->kind = Shape::Kind::Tensor, shape->object = py::object();
}

bool Writer::write_given(PyObject* value, Shape* shape) {
  const auto found = given->find(value);
  if (found == given->end()) return false;
  if (shape) shape->kind = Shape::Kind::Given, shape->object = py::object(), shape->position = found->second;
  return true;
}

void Writer::write_child(PyObject* value, Shape* shape, const std::string& step) {
  Shape* child = shape ? &shape->children.emplace_back() : nullptr;
  size_t length = path.size();
  if (names) path += step;
  write(value, child);
  path.resize(length);
}

void Writer::write_sequence(PyObject* value, Shape* shape) {
  bool is_list = PyList_CheckExact(value), is_tuple = PyTuple_CheckExact(value);
  if (shape) {
    shape->kind = is_list ? Shape::Kind::List : Shape::Kind::Tuple;
    shape->object = type_of(value);
  }
  if (containers && is_list) containers->push_back(value);
  Py_ssize_t size = is_list ? PyList_GET_SIZE(value) : PyTuple_GET_SIZE(value);
  write_simple(is_list ? 'L' : 'U', &size, sizeof size);
  if (!is_list && !is_tuple) write_pointer('t', Py_TYPE(value));
  for (Py_ssize_t i = 0; i < size; ++i)
    write_child(is_list ? PyList_GET_ITEM(value, i) : PyTuple_GET_ITEM(value, i), shape,
                names ? "[" + std::to_string(i) + "]" : "");
  if (is_class_of_tuples(Py_TYPE(value))) write_attributes(value, shape);
}

void Writer::write_dict(PyObject* value, Shape* shape) {
  if (containers) containers->push_back(value);
  if (shape) shape->kind = Shape::Kind::Dict, shape->object = py::object();
  Py_ssize_t size = PyDict_GET_SIZE(value), at = 0;
  write_simple('D', &size, sizeof size);
  PyObject *name, *item;
  while (PyDict_Next(value, &at, &name, &item)) {
    if (!write_constant(name)) write_opaque(name);
    if (shape) shape->keys.push_back(borrowed(name));
    write_child(item, shape, names ? "[" + std::string(py::repr(name)) + "]" : "");
  }
}

/// Every attribute, whether it is a field or not; what is a container as well is left whole.
bool Writer::write_dataclass(PyObject* value, Shape* shape) {
  if (PyType_Check(value) || !has_attribute(Py_TYPE(value), "__dataclass_fields__")) return false;
  if (PyDict_Check(value) || PyList_Check(value) || PyAnySet_Check(value) || PyExceptionInstance_Check(value))
    return false;
  write_object(value, shape);
  return true;
}

/// Of a result: an instance of a class statement's, such as a cache of keys and values, which has nothing but
/// attributes.
bool Writer::write_made_object(PyObject* value, Shape* shape) {
  PyTypeObject* type = Py_TYPE(value);
  if (type->tp_new != PyBaseObject_Type.tp_new || is_kept_part_of_torch(type) || is_plain(borrowed(value)))
    return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i)
    if (auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
        base != &PyBaseObject_Type && !(base->tp_flags & Py_TPFLAGS_HEAPTYPE))
      return false;
  write_object(value, shape);
  return true;
}

void Writer::write_object(PyObject* value, Shape* shape) {
  const auto [seen, is_new] = taken_apart.try_emplace(value, taken_apart.size());
  if (shape)
    shape->kind = is_new ? Shape::Kind::Object : Shape::Kind::Same, shape->object = type_of(value),
    shape->position = seen->second;
  if (!is_new) return write_simple('S', &seen->second, sizeof seen->second);
  if (containers) containers->push_back(value);
  write_pointer('C', Py_TYPE(value));
  write_attributes(value, shape);
}

void Writer::write_attributes(PyObject* value, Shape* shape) {
  auto write_one = [&](PyObject* key, PyObject* name, PyObject* item) {
    if (!write_constant(name)) write_opaque(name);
    if (shape) shape->keys.push_back(borrowed(key));
    write_child(item, shape, names ? "." + std::string(py::str(name)) : "");
  };
  auto attributes = py::reinterpret_steal<py::object>(PyObject_GenericGetDict(value, nullptr));
  if (!attributes) PyErr_Clear();
  PyObject *name, *item;
  for (Py_ssize_t at = 0; attributes && PyDict_Next(attributes.ptr(), &at, &name, &item);)
    write_one(name, name, item);
  for (const py::object& slot : slots_of(Py_TYPE(value))) {
    auto held = py::reinterpret_steal<py::object>(PyMember_GetOne(
        reinterpret_cast<char*>(value), reinterpret_cast<PyMemberDescrObject*>(slot.ptr())->d_member));
    if (held)
      write_one(slot.ptr(), py::object(slot.attr("__name__")).ptr(), held.ptr());
    else
      PyErr_Clear();
  }
  key += '.';
}

/// Types that torch's own pytree knows: ordered dicts, deques, and what users and libraries registered there.
bool Writer::write_registered(PyObject* value, Shape* shape) {
  PyObject* entry = PyDict_GetItem(registered_types(), reinterpret_cast<PyObject*>(Py_TYPE(value)));
  if (!entry) return false;
  py::object definition = borrowed(entry);
  py::tuple flat = definition.attr("flatten_fn")(borrowed(value));
  py::list children(flat[0]);
  py::object context = flat[1];
  if (containers) containers->push_back(value);
  write_pointer('R', Py_TYPE(value));
  const size_t before = tensors.size();
  write(context.ptr());
  if (tensors.size() != before)
    eager_reason = std::string("an argument of type ") + Py_TYPE(value)->tp_name +
                   " keeps tensors in what its type calls context";
  if (shape)
    shape->kind = Shape::Kind::Registered,
    shape->object = py::make_tuple(definition.attr("unflatten_fn"), context);
  Py_ssize_t size = Py_ssize_t(children.size());
  write_simple('L', &size, sizeof size);
  for (Py_ssize_t i = 0; i < size; ++i)
    write_child(PyList_GET_ITEM(children.ptr(), i), shape, names ? "[" + std::to_string(i) + "]" : "");
  return true;
}

/// Slices have no hash in every version of Python.
void Writer::write_slice(PyObject* value) {
  const auto* slice = reinterpret_cast<PySliceObject*>(value);
  key += ':';
  for (PyObject* part : {slice->start, slice->stop, slice->step}) write(part);
}

void Writer::write_opaque(PyObject* value) {
  if (PyIter_Check(value)) {
    eager_reason = std::string("an argument is an iterator, a ") + Py_TYPE(value)->tp_name +
                   ", which a trace would use up";
    return;
  }
  if (Py_TYPE(value)->tp_richcompare == PyBaseObject_Type.tp_richcompare) {
    write_pointer('o', value);
    objects.push_back(borrowed(value));
    return;
  }
  auto number = interned_.number_of(value);
  if (!number) {
    eager_reason = std::string("an argument of type ") + Py_TYPE(value)->tp_name +
                   " cannot be told from another one (it has no hash)";
    return;
  }
  write_simple('O', &*number, sizeof *number);
}

}  // namespace tandem::python
