/// What is set aside, or watched, while a Python program is traced; each for as long as its guard lives.
#pragma once

#include <ATen/SavedTensorHooks.h>
#include <pybind11/stl.h>

#include "contents.h"
#include "tree.h"

namespace tandem::python {

/// The caller's hooks on saved tensors wait for the tensors that compiled code saves; those that the program
/// itself sets up work while it is traced.
class WithoutSavedTensorHooks {
 public:
  WithoutSavedTensorHooks() : outer_(at::SavedTensorDefaultHooks::get_tls_state()) {
    at::SavedTensorDefaultHooks::set_tls_state({});
  }
  ~WithoutSavedTensorHooks() { at::SavedTensorDefaultHooks::set_tls_state(outer_); }

 private:
  at::impl::SavedTensorDefaultHooksTLS outer_;
};

/// Dynamo compiles what Python calls: it would be given fakes, and what it does meanwhile is none of the
/// program's operators.
class WithoutDynamo {
 public:
  WithoutDynamo() : outer_(set(py::none())) {}
  ~WithoutDynamo() { set(outer_); }

 private:
  static py::object set(const py::object& callback) {
    static PyObject* const set_callback = imported("torch._C._dynamo.eval_frame", "set_eval_frame");
    return py::reinterpret_borrow<py::object>(set_callback)(callback);
  }
  py::object outer_;
};

/// Context variables that are set while this lives are so in a context of their own.
class OwnContext {
 public:
  OwnContext()
      : outer_(py::reinterpret_steal<py::object>(PyContext_CopyCurrent())),
        own_(py::reinterpret_steal<py::object>(PyContext_Copy(outer_.ptr()))) {
    if (PyContext_Enter(own_.ptr()) != 0) throw py::error_already_set();
  }
  ~OwnContext() {
    py::error_scope error;  // that is on its way
    PyContext_Exit(own_.ptr());
  }
  /// The name of one that was set to something else, or nothing.
  std::string changed() const {
    for (py::handle item : own_.attr("items")()) {
      py::tuple pair = py::reinterpret_borrow<py::tuple>(item);
      if (!are_same(outer_.attr("get")(pair[0]).ptr(), pair[1].ptr())) return py::str(pair[0].attr("name"));
    }
    return {};
  }

 private:
  py::object outer_, own_;
};

/// What is printed ends the trace that prints it.
class GuardedOutput {
 public:
  GuardedOutput() {
    static PyObject* const guard = imported("tandem._iterators", "GuardOutput");
    guard_ = py::handle(guard)();
  }
  ~GuardedOutput() {
    py::error_scope error;  // that is on its way
    guard_.attr("leave")();
  }

 private:
  py::object guard_;
};

/// Numbers that are not torch's would be constants of compiled code.
class HostRandomness {
 public:
  explicit HostRandomness(const std::vector<py::object>& generators)
      : before_(module().attr("remember")(py::cast(generators))) {}
  /// Undoes draws; says whose numbers they were, or nothing.
  std::string restore() const { return py::str(module().attr("put_back")(before_)); }

 private:
  static py::handle module() {
    static PyObject* const imported = py::module_::import("tandem._randomness").release().ptr();
    return imported;
  }
  py::object before_;
};

}  // namespace tandem::python
