#include "ran_code.h"

#include <frameobject.h>
#include <torch/csrc/utils/pybind.h>

#include <unordered_map>

#include "ownership.h"

namespace tandem::python {
namespace {

thread_local RunningCode* running = nullptr;

/// Functions whose answers nobody can compare: clocks, files, the machine's randomness. Each is known by its definition in C.
const std::unordered_map<const PyMethodDef*, std::string>& functions_of_the_world() {
  static const auto* const functions = [] {
    auto* found = new std::unordered_map<const PyMethodDef*, std::string>();
    auto add = [&](const py::object& holder, const std::string& prefix, std::initializer_list<const char*> names) {
      for (const char* name : names) {
        py::object function = py::getattr(holder, name, py::none());
        if (PyCFunction_Check(function.ptr())) found->emplace(reinterpret_cast<PyCFunctionObject*>(function.ptr())->m_ml, prefix + name);
      }
    };
    add(py::module_::import("time"), "time.", {"time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time",
                                               "process_time_ns", "thread_time", "localtime", "gmtime", "ctime", "sleep"});
    add(py::module_::import("datetime").attr("datetime"), "datetime.", {"now", "utcnow", "today"});
    add(py::module_::import("datetime").attr("date"), "date.", {"today"});
    add(py::module_::import("builtins"), "", {"open", "print", "input"});
    add(py::module_::import("os"), "os.", {"open", "read", "write", "urandom", "getrandom", "times"});
    return found;
  }();
  return *functions;
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

}  // namespace

RunningCode::RunningCode() : outer_(std::exchange(running, this)) {
  functions_of_the_world();
  const PyThreadState* thread = PyThreadState_Get();
  profile_ = thread->c_profilefunc;
  profile_argument_ = py::reinterpret_borrow<py::object>(thread->c_profileobj);
  PyEval_SetProfile(on_event, nullptr);
}

RunningCode::~RunningCode() { stop(); }

void RunningCode::stop() {
  if (!std::exchange(runs_, false)) return;
  py::error_scope error;                     // that is on its way
  PyEval_SetProfile(profile_, profile_argument_.ptr());
  running = outer_;
}

int RunningCode::on_event(PyObject*, PyFrameObject* frame, int event, PyObject* argument) {
  RunningCode* self = running;
  if (!self) return 0;
  if (event == PyTrace_CALL) self->called(frame);
  else if (event == PyTrace_C_CALL) self->called_native(frame, argument);
  return self->profile_ && self->profile_ != on_event ? self->profile_(self->profile_argument_.ptr(), frame, event, argument) : 0;
}

void RunningCode::called(PyFrameObject* frame) {
  auto code = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  if (!known_.insert(code.ptr()).second) return;
  codes.push_back({std::move(code), py::reinterpret_steal<py::object>(PyFrame_GetGlobals(frame))});
}

void RunningCode::called_native(PyFrameObject* frame, PyObject* function) {
  if (!outside.empty() || !PyCFunction_Check(function)) return;
  const auto found = functions_of_the_world().find(reinterpret_cast<PyCFunctionObject*>(function)->m_ml);
  if (found == functions_of_the_world().end()) return;
  if (is_asked_by_user(frame)) outside = found->second;
}

}  // namespace tandem::python
