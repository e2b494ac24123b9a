#include "ownership.h"

namespace tandem::python {
namespace {

std::string_view top_of(PyObject* name) {
  std::string_view full = PyUnicode_AsUTF8(name);
  return full.substr(0, full.find('.'));
}

}  // namespace

PyTypeObject* type_named(const char* module, const char* name) {
  return reinterpret_cast<PyTypeObject*>(imported(module, name));
}

bool is_foreign_module_name(PyObject* name) {
  if (!name || !PyUnicode_Check(name)) return false;
  for (std::string_view foreign : {"torch", "torchgen", "functorch", "numpy", "tandem"})
    if (top_of(name) == foreign) return true;
  return false;
}

bool is_user_module_name(PyObject* name) {
  static PyObject* const library = imported("sys", "stdlib_module_names");
  if (!name || !PyUnicode_Check(name)) return true;
  if (is_foreign_module_name(name) || top_of(name) == "builtins") return false;
  return PySet_Contains(library, py::str(std::string(top_of(name))).ptr()) != 1;
}

PyObject* module_name_of(PyObject* globals) { return PyDict_GetItemString(globals, "__name__"); }

bool is_kept_part_of_torch(PyTypeObject* type) {
  static PyTypeObject* const module = type_named("torch.nn", "Module");
  if (PyType_IsSubtype(type, module)) return true;
  PyObject* of = PyDict_GetItemString(type->tp_dict, "__module__");
  if (!of || !PyUnicode_Check(of)) return false;
  std::string_view name = PyUnicode_AsUTF8(of);
  // The others describe programs, as graphs do, or belong to the machine.
  for (std::string_view part :
       {"torch.optim", "torch.amp", "torch.distributions", "torch.utils.data", "torch.nn", "tandem"})
    if (name == part || (name.starts_with(part) && name[part.size()] == '.')) return true;
  return false;
}

bool is_namespace(PyTypeObject* type) {
  static PyTypeObject* const simple = type_named("types", "SimpleNamespace");
  return PyType_IsSubtype(type, simple);
}

bool is_constant(PyObject* o) {
  return o == Py_None || PyLong_Check(o) || PyFloat_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o) ||
         PyModule_Check(o) || PyCode_Check(o);
}

bool is_random_generator(PyObject* object) {
  static PyTypeObject* const pythons = type_named("_random", "Random");
  if (PyObject_TypeCheck(object, pythons)) return true;
  std::string_view name = Py_TYPE(object)->tp_name;
  return name == "numpy.random._generator.Generator" || name == "numpy.random.mtrand.RandomState";
}

References::References(PyObject* root) {
  note(root, this);
  while (!waiting_.empty() && counted_.size() < most_objects) {
    PyObject* holder = waiting_.back();
    waiting_.pop_back();
    Py_TYPE(holder)->tp_traverse(holder, note, this);
  }
}

int References::note(PyObject* object, void* self) {
  auto& all = *static_cast<References*>(self);
  const bool is_new = ++all.counted_[object] == 1;
  // What belongs to everybody is not followed.
  const bool is_common = PyType_Check(object) || PyModule_Check(object) || PyCallable_Check(object);
  if (is_new && !is_common && Py_TYPE(object)->tp_traverse && PyObject_IS_GC(object))
    all.waiting_.push_back(object);
  return 0;
}

bool References::are_all_of(PyObject* object) const {
  const auto found = counted_.find(object);
  return found != counted_.end() && Py_REFCNT(object) <= found->second;
}

std::vector<py::object> slots_of(PyTypeObject* type) {
  std::vector<py::object> slots;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    if (!(base->tp_flags & Py_TPFLAGS_HEAPTYPE)) continue;
    PyObject *name, *value;
    for (Py_ssize_t at = 0; PyDict_Next(base->tp_dict, &at, &name, &value);)
      if (Py_IS_TYPE(value, &PyMemberDescr_Type)) slots.push_back(py::reinterpret_borrow<py::object>(value));
  }
  return slots;
}

}  // namespace tandem::python
