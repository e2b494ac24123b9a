// What the parts of a value are, besides its tensors.
#include <algorithm>

#include "tree.h"

namespace tandem::python {

bool is_plain(const py::object& constant) {
  PyObject* o = constant.ptr();
  if (o == Py_None || o == Py_Ellipsis || PyBool_Check(o) || PyLong_Check(o) || PyFloat_Check(o) ||
      PyComplex_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o) || PyType_Check(o) || PySlice_Check(o) ||
      PyRange_Check(o))
    return true;
  static PyObject* const types = [] {
    py::module_ torch = py::module_::import("torch");
    return py::make_tuple(torch.attr("dtype"), torch.attr("device"), torch.attr("layout"),
                          torch.attr("memory_format"), torch.attr("Generator"), torch.attr("SymInt"),
                          py::module_::import("enum").attr("Enum"))
        .release()
        .ptr();
  }();
  return PyObject_IsInstance(o, types) == 1;
}

bool holds_given(const Shape& shape) {
  return shape.kind == Shape::Kind::Given ||
         std::any_of(shape.children.begin(), shape.children.end(), holds_given);
}

std::string unseen_part(const Shape& shape) {
  if (shape.kind == Shape::Kind::Constant && !is_plain(shape.object))
    return Py_TYPE(shape.object.ptr())->tp_name;
  for (const Shape& child : shape.children)
    if (std::string part = unseen_part(child); !part.empty()) return part;
  return {};
}

}  // namespace tandem::python
