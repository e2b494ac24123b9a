#include "compiling.h"

#include <pybind11/gil.h>

#include <algorithm>

#include "ownership.h"

namespace tandem::python {

void Compiling::tell(const char* what) {
  static PyObject* const module = py::module_::import("tandem._compiling").release().ptr();
  py::handle(module).attr(what)();
}

std::shared_ptr<void> compiling_anywhere() {
  py::gil_scoped_acquire gil;
  return {new Compiling, [](Compiling* told) {
            py::gil_scoped_acquire gil;
            delete told;
          }};
}

bool asked_whether_compiling(const std::vector<RanCode>& ran) {
  static PyObject* const asking =
      py::object(
          py::reinterpret_borrow<py::object>(imported("torch.compiler", "is_compiling")).attr("__code__"))
          .release()
          .ptr();
  return std::any_of(ran.begin(), ran.end(), [](const RanCode& code) { return code.code.ptr() == asking; });
}

}  // namespace tandem::python
