// Variables of functions and modules that code mentions, and code that will run in a backward.
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <array>

#include "code_names.h"
#include "ownership.h"
#include "reads_walk.h"

namespace tandem::python {
namespace {

bool is_function(PyObject* object) { return PyFunction_Check(object) || PyCFunction_Check(object); }

bool registers_hook(PyObject* name) {
  static const std::array names{PyUnicode_InternFromString("register_hook"),
                                PyUnicode_InternFromString("register_post_accumulate_grad_hook"),
                                PyUnicode_InternFromString("saved_tensors_hooks")};
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void ReadsWalk::note_backward(PyTypeObject* type, PyObject* backward) {
  static PyTypeObject* const custom = type_named("torch.autograd", "Function");
  if (!PyType_IsSubtype(type, custom) || !Py_IS_TYPE(backward, &PyStaticMethod_Type)) return;
  py::object function = py::getattr(backward, "__func__");
  if (PyFunction_Check(function.ptr()) && !codes_.contains(PyFunction_GET_CODE(function.ptr())))
    runs_later(function.ptr());
}

void ReadsWalk::runs_later(PyObject* function) {
  later.push_back({py::reinterpret_borrow<py::object>(PyFunction_GET_CODE(function)),
                   py::reinterpret_borrow<py::object>(PyFunction_GET_GLOBALS(function))});
}

void ReadsWalk::mention_globals() {
  static PyObject* const gradient = PyUnicode_InternFromString("grad");
  // any string may be the name of one then
  static PyObject* const globals = PyUnicode_InternFromString("globals");
  for (const RanCode& ran : to_.ran_) {
    const bool is_users = is_user_module_name(module_name_of(ran.globals.ptr()));
    const std::vector<PyObject*> attributes = attribute_names(ran.code.ptr());
    registers_hooks_ =
        registers_hooks_ || (is_users && std::any_of(attributes.begin(), attributes.end(), registers_hook));
    // optimisers of torch's do too
    asks_for_gradients_ =
        asks_for_gradients_ || std::find(attributes.begin(), attributes.end(), gradient) != attributes.end();
    std::unordered_set<PyObject*> modules;
    std::vector<PyObject*> variables = global_names(ran.code.ptr());
    if (is_users && std::find(variables.begin(), variables.end(), globals) != variables.end())
      variables.insert(variables.end(), attributes.begin(), attributes.end());
    for (PyObject* name : variables) {
      mention(ran.globals.ptr(), name, is_users ? Depth::Everything : Depth::Function);
      mention_module(PyDict_GetItemWithError(ran.globals.ptr(), name), attributes, is_users, modules);
    }
  }
}

void ReadsWalk::mention_module(PyObject* module, const std::vector<PyObject*>& names, bool is_users,
                               std::unordered_set<PyObject*>& known) {
  if (!module || !PyModule_Check(module) || !known.insert(module).second) return;
  PyObject* dict = PyModule_GetDict(module);
  const Depth depth = !is_users                                      ? Depth::Function
                      : is_foreign_module_name(module_name_of(dict)) ? Depth::Value
                                                                     : Depth::Everything;
  for (PyObject* name : names) {
    PyObject* value = PyDict_GetItemWithError(dict, name);
    if (value) mention(dict, name, depth);
    mention_module(value, names, is_users, known);
  }
}

void ReadsWalk::mention(PyObject* dict, PyObject* name, Depth depth) {
  auto [variables, is_new] = mentioned_.try_emplace(dict);
  if (is_new) dicts_.push_back(own(dict));
  auto [at, is_first] = positions_.try_emplace({dict, name}, variables->second.size());
  if (is_first)
    variables->second.emplace_back(name, depth);
  else
    variables->second[at->second].second = std::max(variables->second[at->second].second, depth);
}

void ReadsWalk::walk_module(PyObject* dict) {
  Mentioned names;
  PyObject *name, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &name, &value);)
    if (to_.names_.contains(name))
      names.emplace_back(name,
                         is_foreign_module_name(module_name_of(dict)) ? Depth::Value : Depth::Everything);
  read_variables(dict, names);
}

void ReadsWalk::read_variables(PyObject* dict, const Mentioned& names) {
  Read read{
      .kind = Kind::Variables, .holder = dict, .type = Py_TYPE(dict), .begin = uint32_t(to_.values_.size())};
  std::vector<PyObject*> found;
  for (auto [name, depth] : names) {
    PyObject* value = PyDict_GetItemWithError(dict, name);
    // Hooks on all modules are variables of torch's that users fill.
    if (depth == Depth::Function && value && PyDict_Check(value) &&
        std::string_view(PyUnicode_AsUTF8(name)).starts_with("_global_"))
      depth = Depth::Everything;
    if (to_.changed_.contains({dict, name}) || (depth == Depth::Function && !(value && is_function(value))))
      continue;
    hold(name);
    hold(value);
    if (depth == Depth::Everything || (value && PyFunction_Check(value))) found.push_back(value);
  }
  read.end = uint32_t(to_.values_.size());
  if (read.begin == read.end) return;
  to_.reads_.push_back(read);
  to_.is_same(to_.reads_.back());
  for (PyObject* value : found) visit(value);
}

void ReadsWalk::read_environment() {
  static PyObject* const variables =
      py::object(py::module_::import("os").attr("environ").attr("_data")).release().ptr();
  static PyObject* const name = PyUnicode_InternFromString("environ");
  if (to_.names_.contains(name)) visit(variables);
}

/// Settings that libtorch keeps and that no operator shows; most others are part of every signature.
void ReadsWalk::read_settings() {
  static const std::array settings{
      std::pair{PyUnicode_InternFromString("get_num_threads"), imported("torch", "get_num_threads")},
      std::pair{PyUnicode_InternFromString("get_float32_matmul_precision"),
                imported("torch._C", "_get_float32_matmul_precision")},
      std::pair{PyUnicode_InternFromString("is_anomaly_enabled"), imported("torch", "is_anomaly_enabled")}};
  for (const auto& [name, ask] : settings)
    if (to_.names_.contains(name))
      add({.kind = Kind::Answer, .holder = ask, .what = "a setting of torch's"}, false);
}

void Reads::note(const std::vector<RanCode>& ran, const std::vector<py::object>& roots,
                 const std::vector<Change>& changed) {
  static const std::array of_modules{
      PyUnicode_InternFromString("_parameters"), PyUnicode_InternFromString("_buffers"),
      PyUnicode_InternFromString("_modules"), PyUnicode_InternFromString("training")};
  std::vector<RanCode> codes = ran_;
  codes.insert(codes.end(), ran.begin(), ran.end());
  while (true) {
    Reads next;
    std::unordered_set<PyObject*> known;
    for (const RanCode& code : codes)
      if (known.insert(code.code.ptr()).second) next.ran_.push_back(code);
    next.is_told = is_told;
    next.changed_ = changed_;
    next.changed_.insert(changed.begin(), changed.end());
    next.names_.insert(of_modules.begin(), of_modules.end());
    for (const RanCode& code : next.ran_) {
      for (PyObject* name : attribute_names(code.code.ptr())) next.names_.insert(name);
      next.all_names_ = next.all_names_ || computes_names(code);
    }
    ReadsWalk walk(next);
    walk.run(roots);
    codes.insert(codes.end(), walk.later.begin(), walk.later.end());
    if (walk.later.empty()) return std::swap(*this, next);
  }
}

}  // namespace tandem::python
