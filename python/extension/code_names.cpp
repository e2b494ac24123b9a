#include "code_names.h"

#include <torch/csrc/utils/pybind.h>

#include "ownership.h"

namespace tandem::python {
namespace {

const PyCodeObject* as_code(PyObject* code) { return reinterpret_cast<const PyCodeObject*>(code); }

int operation(const char* name) {
  py::object number = py::module_::import("opcode").attr("opmap").attr("get")(name, -1);
  return py::cast<int>(number);
}

template <class Visit>
void for_each_inner(PyObject* code, Visit&& visit) {
  PyObject* constants = as_code(code)->co_consts;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); ++i)
    if (PyObject* inner = PyTuple_GET_ITEM(constants, i); PyCode_Check(inner)) visit(inner);
}

void add_global_names(PyObject* code, std::vector<PyObject*>& to) {
  static const int global = operation("LOAD_GLOBAL"), name = operation("LOAD_NAME"),
                   of_class = operation("LOAD_FROM_DICT_OR_GLOBALS"), more = operation("EXTENDED_ARG");
  auto bytes = py::reinterpret_steal<py::object>(PyCode_GetCode(reinterpret_cast<PyCodeObject*>(code)));
  const auto* text = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(bytes.ptr()));
  PyObject* names = as_code(code)->co_names;
  size_t high = 0;
  for (Py_ssize_t i = 0; i + 1 < PyBytes_GET_SIZE(bytes.ptr()); i += 2) {
    const size_t argument = high << 8 | text[i + 1];
    high = text[i] == more ? argument : 0;
    if (text[i] != global && text[i] != name && text[i] != of_class) continue;
    const size_t at = text[i] == global ? argument >> 1 : argument;
    if (at < size_t(PyTuple_GET_SIZE(names))) to.push_back(PyTuple_GET_ITEM(names, Py_ssize_t(at)));
  }
  for_each_inner(code, [&](PyObject* inner) { add_global_names(inner, to); });
}

void add_attribute_names(PyObject* code, std::vector<PyObject*>& to) {
  PyObject* names = as_code(code)->co_names;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) to.push_back(PyTuple_GET_ITEM(names, i));
  PyObject* constants = as_code(code)->co_consts;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); ++i)
    if (PyObject* text = PyTuple_GET_ITEM(constants, i);
        PyUnicode_CheckExact(text) && PyUnicode_IsIdentifier(text))
      to.push_back(text);
  for_each_inner(code, [&](PyObject* inner) { add_attribute_names(inner, to); });
}

}  // namespace

std::vector<PyObject*> global_names(PyObject* code) {
  std::vector<PyObject*> names;
  add_global_names(code, names);
  return names;
}

std::vector<PyObject*> attribute_names(PyObject* code) {
  std::vector<PyObject*> names;
  add_attribute_names(code, names);
  return names;
}

bool computes_names(const RanCode& code) {
  PyObject* module = module_name_of(code.globals.ptr());
  if (module && PyUnicode_Check(module)) {
    const std::string_view name = PyUnicode_AsUTF8(module);
    if (name == "copy" || name == "copyreg" || name == "dataclasses" || name == "inspect") return true;
  }
  if (!is_user_module_name(module)) return false;
  static PyObject* const computes = imported("tandem._names", "computes_names");
  return py::cast<bool>(py::handle(computes)(code.code));
}

}  // namespace tandem::python
