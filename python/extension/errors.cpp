#include "errors.h"

#include <pybind11/gil.h>
#include <tandem/error.h>

#include <array>
#include <string>

#include <torch/csrc/Exceptions.h>

#include "base/host.h"
#include "trace/location.h"
#include "tree.h"

namespace tandem::python {
namespace {

/// The folder of a package, for telling its files from the user's.
std::string folder_of(const char* package) {
  std::string file = py::str(py::module_::import(package).attr("__file__"));
  return file.substr(0, file.rfind('/') + 1);
}

/// "file:line" of the innermost Python frame that is neither torch's nor ours.
std::string python_location() {
  if (!Py_IsInitialized()) return {};
  py::gil_scoped_acquire gil;
  static const auto* const foreign = new std::array<std::string, 2>{folder_of("torch"), folder_of("tandem")};
  py::object frame = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame && !frame.is_none()) {
    std::string file = py::str(frame.attr("f_code").attr("co_filename"));
    bool users = std::none_of(foreign->begin(), foreign->end(),
                              [&](const std::string& folder) { return file.starts_with(folder); });
    if (users) return file + ":" + std::string(py::str(frame.attr("f_lineno")));
    frame = frame.attr("f_back");
  }
  return {};
}

/// Under the most derived of our names for it, as torch's engine carries Python's errors.
void raise_in_python(const Error& error) {
  if (!Py_IsInitialized()) return;
  py::gil_scoped_acquire gil;
  const char* name = dynamic_cast<const UnsupportedError*>(&error) ? "UnsupportedError"
                     : dynamic_cast<const ContractError*>(&error)  ? "ContractError"
                     : dynamic_cast<const CacheError*>(&error)     ? "CacheError"
                                                                   : "Error";
  PyErr_SetString(imported("tandem._C", name), error.what());
  python_error raised;
  raised.persist();
  throw raised;
}

}  // namespace

void bind_errors(py::module_& module) {
  // Deepest first: the translator that was registered last is asked first.
  auto& error = py::register_exception<Error>(module, "Error", PyExc_RuntimeError);
  error.attr("__doc__") = "Any failure of Tandem's own.";
  auto& unsupported = py::register_exception<UnsupportedError>(module, "UnsupportedError", error);
  unsupported.attr("__doc__") =
      "The function cannot be traced or compiled ahead of time; names the operator and the line that called "
      "it.";
  auto& contract = py::register_exception<ContractError>(module, "ContractError", error);
  contract.attr("__doc__") = "A call that no retrace can serve.";
  auto& cache = py::register_exception<CacheError>(module, "CacheError", error);
  cache.attr("__doc__") = "Strict mode only: the cache could not be used as asked.";
  for (py::object type :
       {py::object(error), py::object(unsupported), py::object(contract), py::object(cache)})
    type.attr("__module__") = "tandem";
  host_location() = python_location;
  raise_in_host() = raise_in_python;
  drop_garbage() = [] {
    if (!Py_IsInitialized()) return;
    py::gil_scoped_acquire gil;
    PyGC_Collect();
  };
}

}  // namespace tandem::python
