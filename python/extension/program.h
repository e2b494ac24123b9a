/// Running a Python function for the engine: on fakes while it is traced, on the caller's own objects where it is not compiled.
#pragma once

#include <pybind11/gil.h>
#include <tandem/compiled.h>
#include <torch/csrc/Exceptions.h>

#include "environment.h"

namespace tandem::python {

/// One call on its way through the engine, on this thread.
class PythonCall {
 public:
  PythonCall(const py::args& args, const py::kwargs& kwargs);
  ~PythonCall();
  PythonCall(const PythonCall&) = delete;

  /// The call's result: what the original returned where it ran as it is, else the compiled tensors put together.
  py::object finish(const detail::Returned& returned);

  static PythonCall* current();
  /// Runs the original on the caller's own arguments.
  void run_original(const py::object& original);

 private:
  const py::args& args_;
  const py::kwargs& kwargs_;
  py::object result_;
  PythonCall* const outer_;
};

/// The program that calls `original` with arguments like these.
detail::Program make_program(const py::object& original, std::shared_ptr<const Environment> environment, const py::args& args, const py::kwargs& kwargs);

/// Lets go of the GIL while `step` runs; errors become Python's own or children of tandem.Error.
template <class Step>
auto run_without_gil(Step&& step) {
  try {
    decltype(step()) result;
    {
      py::gil_scoped_release no_gil;
      result = step();
    }
    // A backward that failed while it was traced fails again when it is called; until then nothing has happened.
    PyErr_Clear();
    return result;
  } catch (const py::error_already_set&) {
    throw;
  } catch (const Error&) {
    PyErr_Clear();
    throw;
  } catch (...) {
    torch::translate_exception_to_python(std::current_exception());
    throw py::error_already_set();
  }
}

}  // namespace tandem::python
