#include "reads_walk.h"

#include <structmember.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include "buffers.h"
#include "contents.h"
#include "ownership.h"

namespace tandem::python {

ReadsWalk::ReadsWalk(Reads& to) : to_(to) {
  for (const RanCode& ran : to_.ran_) codes_.insert(ran.code.ptr());
}

void ReadsWalk::run(const std::vector<py::object>& roots) {
  for (const py::object& root : roots) {
    to_.roots_.emplace_back(root.ptr());
    visit(root.ptr());
  }
  mention_globals();
  for (PyObject* dict : dicts_) read_variables(dict, mentioned_[dict]);
  read_environment();
  read_settings();
  for (size_t next = 0; next < waiting_.size(); ++next) walk(waiting_[next]);
}

PyObject* ReadsWalk::own(PyObject* object) {
  to_.owned_.push_back(py::reinterpret_borrow<py::object>(object));
  return object;
}

void ReadsWalk::visit(PyObject* object) {
  const bool is_module =
      object && PyModule_Check(object) && is_user_module_name(module_name_of(PyModule_GetDict(object)));
  if (object && (is_module || !is_constant(object)) && seen_.size() < most_objects &&
      seen_.insert(object).second)
    waiting_.push_back(object);
}

void ReadsWalk::add(Read read, bool visits) {
  read.begin = uint32_t(to_.values_.size());
  if (read.kind != Kind::Pointer && read.kind != Kind::Context && read.kind != Kind::Answer)
    read.type = Py_TYPE(read.holder);
  std::vector<PyObject*> found;
  to_.each(read, [&](PyObject* name, PyObject* value) {
    if (name) hold(name);
    hold(value);
    if (visits) found.push_back(name && read.kind == Kind::Dict ? name : nullptr), found.push_back(value);
    return true;
  });
  read.end = uint32_t(to_.values_.size());
  to_.reads_.push_back(read);
  to_.is_same(to_.reads_.back());  // notes the version
  for (PyObject* value : found) visit(value);
}

void ReadsWalk::pointer(PyObject* holder, PyObject** where, const char* what, PyObject* about, bool visits) {
  if (!to_.changed_.contains({holder, nullptr}))
    add({.kind = Kind::Pointer, .holder = holder, .where = where, .what = what, .about = about}, visits);
}

void ReadsWalk::walk(PyObject* object) {
  if (to_.changed_.contains({object, nullptr})) return;
  if (PyFunction_Check(object)) return walk_function(object);
  if (PyModule_Check(object)) return walk_module(PyModule_GetDict(object));
  if (PyType_Check(object)) return walk_class(reinterpret_cast<PyTypeObject*>(object));
  if (is_random_generator(object)) return;
  if (THPVariable_Check(object)) return walk_tensor(object);
  walk_contents(object);
  if (PyWeakref_Check(object)) {
    auto* reference = reinterpret_cast<PyWeakReference*>(object);
    pointer(object, &reference->wr_object, "what a weak reference refers to");
  } else if (PyContextVar_CheckExact(object)) {
    add({.kind = Kind::Context, .holder = object, .what = "a context variable"});
  } else if (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE || is_namespace(Py_TYPE(object))) {
    walk_instance(object);
  }
  walk_native(object);
}

void ReadsWalk::walk_contents(PyObject* object) {
  if (PyODict_Check(object) && PyDict_GET_SIZE(object) > 1)
    add({.kind = Kind::Others, .holder = object});
  else if (PyDict_Check(object))
    add({.kind = Kind::Dict, .holder = object});
  else if (PyList_Check(object) || PyTuple_Check(object))
    add({.kind = Kind::Sequence, .holder = object});
  else if (PyAnySet_Check(object) || container_kind(object) == Holder::Deque)
    add({.kind = Kind::Others, .holder = object});
  if (auto bytes = bytes_of(object)) {
    const auto at = uint32_t(to_.memory_.size());
    to_.memory_.push_back(std::move(*bytes));
    to_.reads_.push_back(
        {.kind = Kind::Memory, .holder = object, .type = Py_TYPE(object), .begin = at, .end = at});
  }
}

void ReadsWalk::walk_tensor(PyObject* object) {
  if (!is_plain_tensor(object)) return read_class(object);
  const at::Tensor& tensor = THPVariable_Unpack(object);
  const auto at = uint32_t(to_.tensors_.size());
  to_.tensors_.push_back(TensorFacts::of(tensor, asks_for_gradients_));
  to_.reads_.push_back(
      {.kind = Kind::Tensor, .holder = object, .what = "what is known of a tensor", .begin = at, .end = at});
  walk_attributes(object);
}

void ReadsWalk::read_class(PyObject* object) {
  auto* type = own(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  pointer(object, reinterpret_cast<PyObject**>(&object->ob_type), "the class of a ", type, false);
}

void ReadsWalk::walk_attributes(PyObject* object) {
  PyObject** attributes = _PyObject_GetDictPtr(object);
  if (!attributes) return;
  auto* type = own(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  if (!*attributes && THPVariable_Check(object))
    return pointer(object, attributes, "an attribute of a ", type, false);
  py::object made = py::reinterpret_steal<py::object>(PyObject_GenericGetDict(object, nullptr));
  if (!made) return PyErr_Clear();
  pointer(object, attributes, "the attributes of a ", type, false);
  if (seen_.insert(*attributes).second) add({.kind = Kind::Attributes, .holder = *attributes, .about = type});
}

void ReadsWalk::walk_instance(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (!is_watched(type)) return;
  read_class(object);
  walk_attributes(object);
  for (const py::object& slot : slots_of(type)) {
    const PyMemberDef* member = reinterpret_cast<PyMemberDescrObject*>(slot.ptr())->d_member;
    if (member->type != T_OBJECT_EX || to_.changed_.contains({object, slot.ptr()})) continue;
    auto* where = reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + member->offset);
    pointer(object, where, "attribute ", own(py::str(member->name).ptr()));
  }
  visit(reinterpret_cast<PyObject*>(type));
}

bool ReadsWalk::is_watched(PyTypeObject* type) {
  auto [known, is_new] = types_.try_emplace(type, true);
  if (is_new && type->tp_flags & Py_TPFLAGS_HEAPTYPE)
    known->second = !is_foreign_module_name(PyDict_GetItemString(type->tp_dict, "__module__")) ||
                    is_kept_part_of_torch(type);
  return known->second;
}

void ReadsWalk::walk_class(PyTypeObject* type) {
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return;
  auto* object = reinterpret_cast<PyObject*>(type);
  pointer(object, &type->tp_mro, "the bases of class ", own(object), false);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    if (!(base->tp_flags & Py_TPFLAGS_HEAPTYPE) || !seen_.insert(base->tp_dict).second) continue;
    if (PyObject* backward = PyDict_GetItemString(base->tp_dict, "backward")) note_backward(type, backward);
    add({.kind = Kind::ClassAttributes,
         .holder = base->tp_dict,
         .about = own(reinterpret_cast<PyObject*>(base))},
        is_watched(base));
  }
  if (Py_TYPE(object) != &PyType_Type) visit(reinterpret_cast<PyObject*>(Py_TYPE(object)));
}

void ReadsWalk::walk_function(PyObject* object) {
  auto* function = reinterpret_cast<PyFunctionObject*>(object);
  if (is_user_module_name(module_name_of(function->func_globals))) {
    pointer(object, &function->func_dict, "an attribute of a function", nullptr, false);
    if (function->func_dict && seen_.insert(function->func_dict).second)
      add({.kind = Kind::Attributes,
           .holder = function->func_dict,
           .about = own(reinterpret_cast<PyObject*>(&PyFunction_Type))});
  }
  if (!codes_.contains(function->func_code)) {
    if (registers_hooks_ && is_user_module_name(module_name_of(function->func_globals))) runs_later(object);
    return;
  }
  pointer(object, &function->func_code, "the code of a function");
  pointer(object, &function->func_defaults, "a default argument");
  pointer(object, &function->func_kwdefaults, "a default argument");
  PyObject* cells = function->func_closure;
  PyObject* names = reinterpret_cast<PyCodeObject*>(function->func_code)->co_localsplusnames;
  const Py_ssize_t first = PyTuple_GET_SIZE(names) - (cells ? PyTuple_GET_SIZE(cells) : 0);
  for (Py_ssize_t i = 0; cells && i < PyTuple_GET_SIZE(cells); ++i) {
    PyObject* cell = PyTuple_GET_ITEM(cells, i);
    if (!seen_.insert(cell).second) continue;
    pointer(cell, &reinterpret_cast<PyCellObject*>(cell)->ob_ref, "the variable ",
            own(PyTuple_GET_ITEM(names, first + i)));
    if (PyObject* module = PyCell_GET(cell); module && PyModule_Check(module))
      walk_module(PyModule_GetDict(module));
  }
}

void ReadsWalk::walk_native(PyObject* object) {
  static PyTypeObject* const memory = type_named("functools", "_lru_cache_wrapper");
  static PyTypeObject* const of_python = type_named("tandem._iterators", "Guard");
  if (Py_IS_TYPE(object, memory)) return visit(py::getattr(object, "__wrapped__", py::none()).ptr());
  if (PyDict_Check(object) || PyList_Check(object) || PyTuple_Check(object) || PyAnySet_Check(object) ||
      PyIter_Check(object))
    return;
  if (PyGen_Check(object) || PyCoro_CheckExact(object) || PyFrame_Check(object) ||
      is_namespace(Py_TYPE(object)))
    return;
  const PyTypeObject* type = Py_TYPE(object);
  // what class statements added was walked
  while (type && type->tp_traverse == of_python->tp_traverse) type = type->tp_base;
  if (!type || !type->tp_traverse) return;
  type->tp_traverse(
      object, [](PyObject* part, void* walk) { return static_cast<ReadsWalk*>(walk)->visit(part), 0; }, this);
}

}  // namespace tandem::python
