/// Running a Python function for the engine: on fakes while it is traced, on the caller's own objects where
/// it is not compiled.
#pragma once

#include <pybind11/gil.h>
#include <tandem/compiled.h>
#include <tandem/error.h>
#include <torch/csrc/Exceptions.h>

#include "environment.h"
#include "surroundings.h"

namespace tandem::python {

/// A function or module of Python's and what else it is watched through; the one place that holds them, so
/// that the garbage collector can be shown it.
struct Original {
  py::object function;
  py::list roots;
  bool must_compile = false;
};

/// One call on its way through the engine, on this thread.
class PythonCall {
 public:
  PythonCall(const Original& original, const py::args& args, const py::kwargs& kwargs, const Writer& writer,
             std::shared_ptr<Reads> reads);
  ~PythonCall();
  PythonCall(const PythonCall&) = delete;

  /// The call's result: what the original returned where it ran as it is, else the compiled tensors put
  /// together.
  py::object finish(const detail::Returned& returned);

  static PythonCall* current();
  /// Runs the original on the caller's own arguments.
  void run_original();
  /// Runs it on fakes in their place.
  detail::Returned trace(const Tensors& fakes) const;
  Environment environment() const { return {original_.roots, objects_}; }
  Surroundings surroundings() const;

 private:
  void note_reads(const std::vector<RanCode>& ran, const std::vector<Change>& changes) const;
  const Original& original_;
  const py::args& args_;
  const py::kwargs& kwargs_;
  const std::vector<py::object>& objects_;  ///< that it was given and that are equal to themselves alone
  const std::shared_ptr<Reads> reads_;
  py::object result_;
  PythonCall* const outer_;
};

/// The program that is run for the current call.
detail::Returned run_current_call(const Tensors& tensors);
/// Throws RunEagerly, which nobody between here and the engine can hide.
[[noreturn]] void refuse_for_good(const std::string& reason);
/// What the user calls a tensor that the current call captured, or an empty string.
std::string name_capture(const at::Tensor& tensor);

/// Lets go of the GIL while `step` runs; errors become Python's own or children of tandem.Error.
template <class Step>
auto run_without_gil(Step&& step) {
  try {
    decltype(step()) result;
    {
      py::gil_scoped_release no_gil;
      result = step();
    }
    // A backward that failed while it was traced fails again when it is called; until then nothing has
    // happened.
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
