#include "reads.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>

#include "buffers.h"
#include "contents.h"
#include "ownership.h"

namespace tandem::python {
namespace {

/// Every change gives a dict a number that no dict had before.
uint64_t version_of(PyObject* dict) {
#if PY_VERSION_HEX < 0x030E0000
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#pragma GCC diagnostic pop
#else
  return 0;
#endif
}

bool is_simple(PyObject* value) {
  if (!PyTuple_CheckExact(value)) return is_constant(value) || PyBool_Check(value);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
    if (!is_simple(PyTuple_GET_ITEM(value, i))) return false;
  return true;
}

/// Python's own containers cannot be held weakly, and need not be: another one in the same place has to hold
/// the same.
bool is_compared_by_contents(PyObject* value) {
  return PyDict_CheckExact(value) || PyList_CheckExact(value) ||
         (PyTuple_CheckExact(value) && !is_simple(value));
}

PyObject* const* items_of(PyObject* sequence) {
  return PyList_Check(sequence) ? reinterpret_cast<PyListObject*>(sequence)->ob_item
                                : reinterpret_cast<PyTupleObject*>(sequence)->ob_item;
}

bool is_sized(const at::Tensor& tensor) {
  return !tensor.is_nested() && !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

/// Others warn when they are asked.
bool has_gradient_now(const at::Tensor& tensor) { return tensor.is_leaf() && tensor.grad().defined(); }

bool is_double_underlined(PyObject* name) {
  return PyUnicode_GET_LENGTH(name) > 1 && PyUnicode_READ_CHAR(name, 0) == '_' &&
         PyUnicode_READ_CHAR(name, 1) == '_';
}

PyTypeObject* base_iterated(PyObject* object) {
  static PyTypeObject* const deque = type_named("collections", "deque");
  if (PyODict_Check(object)) return &PyODict_Type;
  if (PyFrozenSet_Check(object)) return &PyFrozenSet_Type;
  return PySet_Check(object) ? &PySet_Type : deque;
}

}  // namespace

Held::Held(PyObject* value) : address_(value) {
  if (!value || is_compared_by_contents(value)) return;
  if (!is_simple(value) && PyType_SUPPORTS_WEAKREFS(Py_TYPE(value)))
    keeper_ = py::reinterpret_steal<py::object>(PyWeakref_NewRef(value, nullptr));
  is_weak_ = bool(keeper_);
  if (is_weak_) return;
  PyErr_Clear();
  keeper_ = py::reinterpret_borrow<py::object>(value);
}

bool Held::equals(PyObject* value) const {
  return value && keeper_ && !is_weak_ && are_same(address_, value);
}

TensorFacts TensorFacts::of(const at::Tensor& tensor, bool with_gradient) {
  at::DimVector sizes;
  if (is_sized(tensor)) sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  return {tensor.requires_grad(), with_gradient ? std::optional(has_gradient_now(tensor)) : std::nullopt,
          tensor.scalar_type(), tensor.device(), std::move(sizes)};
}

bool TensorFacts::are_of(const at::Tensor& tensor) const {
  return tensor.requires_grad() == requires_grad &&
         (!has_gradient || has_gradient_now(tensor) == *has_gradient) && tensor.scalar_type() == dtype &&
         tensor.device() == device && (!is_sized(tensor) || tensor.sizes() == at::IntArrayRef(sizes));
}

bool Reads::counts(const Read& read, PyObject* name, PyObject* value) const {
  if (!changed_.empty() && changed_.contains({read.holder, name})) return false;
  if (!PyUnicode_CheckExact(name) || !PyUnicode_CHECK_INTERNED(name) || names_.contains(name)) return true;
  if (read.kind == Read::Kind::Attributes) return all_names_;
  // Operators call methods with two underlines without naming them; others of these names are Python's own,
  // some of which it fills in late.
  return is_double_underlined(name) ? PyFunction_Check(value) : all_names_;
}

bool Reads::each(const Read& read, c10::function_ref<bool(PyObject*, PyObject*)> visit) const {
  PyObject *name, *value;
  switch (read.kind) {
    case Read::Kind::Pointer:
      return visit(nullptr, *read.where);
    case Read::Kind::Attributes:
    case Read::Kind::ClassAttributes:
      for (Py_ssize_t at = 0; PyDict_Next(read.holder, &at, &name, &value);)
        if (counts(read, name, value) && !visit(name, value)) return false;
      return true;
    case Read::Kind::Variables:
      for (uint32_t i = read.begin; i < read.end; i += 2)
        if (!visit(values_[i].owned(), PyDict_GetItemWithError(read.holder, values_[i].owned())))
          return false;
      return true;
    case Read::Kind::Dict:
      for (Py_ssize_t at = 0; PyDict_Next(read.holder, &at, &name, &value);)
        if (!visit(name, value)) return false;
      return true;
    case Read::Kind::Sequence:
      for (Py_ssize_t i = 0; i < Py_SIZE(read.holder); ++i)
        if (!visit(nullptr, items_of(read.holder)[i])) return false;
      return true;
    case Read::Kind::Others: {
      auto items = py::reinterpret_steal<py::object>(base_iterated(read.holder)->tp_iter(read.holder));
      while (auto item = py::reinterpret_steal<py::object>(items ? PyIter_Next(items.ptr()) : nullptr)) {
        PyObject* of =
            PyODict_Check(read.holder) ? PyDict_GetItemWithError(read.holder, item.ptr()) : nullptr;
        if (!(of ? visit(item.ptr(), of) : visit(nullptr, item.ptr()))) return false;
      }
      PyErr_Clear();
      return true;
    }
    case Read::Kind::Context: {
      if (PyContextVar_Get(read.holder, nullptr, &value) != 0) PyErr_Clear();
      auto held = py::reinterpret_steal<py::object>(value);
      return visit(nullptr, held.ptr());
    }
    case Read::Kind::Answer: {
      auto answer = py::reinterpret_steal<py::object>(PyObject_CallNoArgs(read.holder));
      if (!answer) PyErr_Clear();
      return visit(nullptr, answer.ptr());
    }
    case Read::Kind::Memory:
    case Read::Kind::Tensor:
      return true;
  }
  return true;
}

bool Reads::is_untouched(const Read& read) const {
  switch (read.kind) {
    case Read::Kind::Pointer:
      return values_[read.begin].is(*read.where);
    case Read::Kind::Attributes:
    case Read::Kind::ClassAttributes:
    case Read::Kind::Variables:
    case Read::Kind::Dict:
      return Py_TYPE(read.holder) == read.type && read.version && version_of(read.holder) == read.version;
    case Read::Kind::Tensor:
      return tensors_[read.begin].are_of(THPVariable_Unpack(read.holder));
    default:
      return false;
  }
}

bool Reads::is_same(Read& read) {
  if (read.type && Py_TYPE(read.holder) != read.type) return false;
  if (read.kind == Read::Kind::Tensor) return false;
  if (read.kind == Read::Kind::Memory) return has_bytes(read.holder, memory_[read.begin]);
  uint32_t at = read.begin;
  const bool same = each(read, [&](PyObject* name, PyObject* value) {
    if (name && (at >= read.end || !values_[at++].is(name))) return false;
    return at < read.end && values_[at++].is(value);
  });
  if (!same || at != read.end) return false;
  if (PyDict_Check(read.holder)) read.version = version_of(read.holder);
  return true;
}

bool Reads::roots_are_alive() const {
  return std::all_of(roots_.begin(), roots_.end(), [](const Held& root) { return root.is_alive(); });
}

Read* Reads::find_changed() {
  for (Read& read : reads_)
    if (!is_untouched(read) && !is_same(read)) return &read;
  return nullptr;
}

bool Reads::hold() { return roots_are_alive() && !find_changed(); }

bool Reads::are_gone() const {
  return !roots_are_alive() ||
         !std::all_of(values_.begin(), values_.end(), [](const Held& value) { return value.is_alive(); });
}

size_t Reads::fingerprint() {
  const Read* read = roots_are_alive() ? find_changed() : nullptr;
  if (!read || (read->type && Py_TYPE(read->holder) != read->type)) return 0;
  auto hash = reinterpret_cast<size_t>(read->holder);
  auto mix = [&](PyObject* value) {
    const bool by_value =
        value && (PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyUnicode_CheckExact(value));
    hash = hash * 1000003 ^ (by_value ? size_t(PyObject_Hash(value)) : reinterpret_cast<size_t>(value));
  };
  each(*read, [&](PyObject* name, PyObject* value) { return mix(name), mix(value), true; });
  return hash;
}

std::string Reads::first_change() {
  if (!roots_are_alive()) return "an object that it was given";
  const Read* read = find_changed();
  if (!read) return {};
  std::string about;
  if (read->about)
    about = PyType_Check(read->about) ? reinterpret_cast<PyTypeObject*>(read->about)->tp_name
                                      : std::string(py::str(read->about));
  about = about.substr(about.rfind('.') + 1);
  if (!read->type) return read->what + about;
  if (Py_TYPE(read->holder) != read->type) return std::string("what a ") + read->type->tp_name + " holds";
  PyObject* changed = nullptr;
  uint32_t at = read->begin;
  each(*read, [&](PyObject* name, PyObject* value) {
    if (name && !(at + 1 < read->end && values_[at].is(name) && values_[at + 1].is(value))) changed = name;
    at += 2;
    return !changed;
  });
  const std::string name =
      changed && PyUnicode_Check(changed) ? std::string(py::str(changed)) : std::string("?");
  if (read->kind == Read::Kind::Variables) return "the global " + name;
  if (read->kind == Read::Kind::Attributes || read->kind == Read::Kind::ClassAttributes)
    return "attribute " + name + " of class " + about;
  return std::string("what a ") + read->type->tp_name + " holds";
}

int Reads::visit(visitproc visit, void* arg) const {
  for (const RanCode& ran : ran_) {
    Py_VISIT(ran.code.ptr());
    Py_VISIT(ran.globals.ptr());
  }
  for (const Held& root : roots_) Py_VISIT(root.owned());
  for (const Held& value : values_) Py_VISIT(value.owned());
  for (const py::object& owned : owned_) Py_VISIT(owned.ptr());
  return 0;
}

}  // namespace tandem::python
