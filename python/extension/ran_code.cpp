#include "ran_code.h"

#include <frameobject.h>
#include <torch/csrc/utils/pybind.h>

#include <unordered_map>

#include "ownership.h"
#include "trace/failure.h"
#include "trace/tracer.h"

namespace tandem::python {
namespace {

thread_local RunningCode* running = nullptr;

using Definitions = std::unordered_map<const PyMethodDef*, std::string>;

const PyMethodDef* definition_of(PyObject* function) {
  if (PyCFunction_Check(function)) return reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
  return Py_IS_TYPE(function, &PyMethodDescr_Type)
             ? reinterpret_cast<PyMethodDescrObject*>(function)->d_method
             : nullptr;
}

/// Functions whose answers nobody can compare, and whose effects nobody can undo: clocks, files, the
/// machine's randomness.
const Definitions& functions_of_the_world() {
  static const auto* const functions = [] {
    auto* found = new Definitions();
    auto add = [&](const py::object& holder, const std::string& prefix,
                   std::initializer_list<const char*> names) {
      for (const char* name : names)
        if (const PyMethodDef* definition = definition_of(py::getattr(holder, name, py::none()).ptr()))
          found->emplace(definition, prefix + name);
    };
    add(py::module_::import("time"), "time.",
        {"time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time",
         "process_time_ns", "thread_time", "localtime", "gmtime", "ctime", "sleep"});
    add(py::module_::import("datetime").attr("datetime"), "datetime.", {"now", "utcnow", "today"});
    add(py::module_::import("datetime").attr("date"), "date.", {"today"});
    add(py::module_::import("builtins"), "", {"open", "input"});
    add(py::module_::import("os"), "os.",
        {"open", "read", "write", "stat", "listdir", "scandir", "getcwd", "mkdir", "remove", "system",
         "urandom", "getrandom", "times"});
    return found;
  }();
  return *functions;
}

bool is_import(PyObject* module_name) {
  if (!module_name || !PyUnicode_Check(module_name)) return false;
  const std::string_view name = PyUnicode_AsUTF8(module_name);
  return name.starts_with("importlib") || name.starts_with("_frozen_importlib");
}

/// Python's library asks for somebody: the user, or torch, which names things by random numbers.
bool is_asked_by_user(PyFrameObject* frame) {
  auto held = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(frame));
  while (held) {
    auto* asking = reinterpret_cast<PyFrameObject*>(held.ptr());
    PyObject* name = module_name_of(py::reinterpret_steal<py::object>(PyFrame_GetGlobals(asking)).ptr());
    if (is_foreign_module_name(name)) return false;
    if (is_user_module_name(name)) return true;
    held = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(asking)));
  }
  return true;
}

/// Ends the trace for good, whatever the program catches.
bool end_trace(const std::string& reason) {
  last_failure() = std::make_exception_ptr(KeepsState(reason));
  PyErr_SetString(PyExc_RuntimeError, reason.c_str());
  return false;
}

/// A version counts the writes to a tensor, by whomever: it is no part of what a call gets, and no operator
/// reads it.
bool reads_versions(PyObject* code, PyObject* globals) {
  static PyObject* const name = PyUnicode_InternFromString("_version");
  return is_user_module_name(module_name_of(globals)) &&
         PySequence_Contains(reinterpret_cast<PyCodeObject*>(code)->co_names, name) == 1;
}

}  // namespace

RunningCode::RunningCode(std::vector<RanCode>& codes) : codes_(codes), outer_(std::exchange(running, this)) {
  functions_of_the_world();
  const PyThreadState* thread = PyThreadState_Get();
  profile_ = thread->c_profilefunc;
  profile_argument_ = py::reinterpret_borrow<py::object>(thread->c_profileobj);
  PyEval_SetProfile(on_event, nullptr);
}

RunningCode::~RunningCode() {
  py::error_scope error;  // that is on its way
  PyEval_SetProfile(profile_, profile_argument_.ptr());
  running = outer_;
}

int RunningCode::on_event(PyObject*, PyFrameObject* frame, int event, PyObject* argument) {
  RunningCode* self = running;
  if (!self) return 0;
  if (event == PyTrace_CALL && !self->called(frame)) return -1;
  if (event == PyTrace_RETURN) self->returned(frame);
  if (event == PyTrace_C_CALL && !self->called_native(frame, argument)) return -1;
  return self->profile_ && self->profile_ != on_event
             ? self->profile_(self->profile_argument_.ptr(), frame, event, argument)
             : 0;
}

bool RunningCode::called(PyFrameObject* frame) {
  auto code = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  if (known_.contains(code.ptr())) return true;
  auto globals = py::reinterpret_steal<py::object>(PyFrame_GetGlobals(frame));
  imports_ += is_import(module_name_of(globals.ptr()));
  if (imports_ > 0) return true;
  if (reads_versions(code.ptr(), globals.ptr()))
    return end_trace("the function reads the version of a tensor");
  known_.insert(code.ptr());
  codes_.push_back({std::move(code), std::move(globals)});
  return true;
}

void RunningCode::returned(PyFrameObject* frame) {
  if (imports_ > 0)
    imports_ -= is_import(module_name_of(py::reinterpret_steal<py::object>(PyFrame_GetGlobals(frame)).ptr()));
}

bool RunningCode::called_native(PyFrameObject* frame, PyObject* function) {
  if (imports_ > 0) return true;
  const auto found = functions_of_the_world().find(definition_of(function));
  if (found == functions_of_the_world().end() || !is_asked_by_user(frame)) return true;
  return end_trace("the function calls " + found->second);
}

}  // namespace tandem::python
