// Values of Python's, put together.
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include "tree.h"

namespace tandem::python {
namespace {

/// The values behind a shape's keys are attributes.
void set_attributes(const Shape& shape, const std::vector<py::object>& children, PyObject* object) {
  py::object attributes;
  const size_t first = children.size() - shape.keys.size();
  for (size_t i = 0; i < shape.keys.size(); ++i) {
    PyObject *name = shape.keys[i].ptr(), *value = children[first + i].ptr();
    const bool is_slot = Py_IS_TYPE(name, &PyMemberDescr_Type);
    if (!is_slot && !attributes)
      attributes = py::reinterpret_steal<py::object>(PyObject_GenericGetDict(object, nullptr));
    if ((is_slot ? Py_TYPE(name)->tp_descr_set(name, object, value)
                 : PyDict_SetItem(attributes.ptr(), name, value)) != 0)
      throw py::error_already_set();
  }
}

/// One value, around tensors and containers that are there.
class Builder {
 public:
  Builder(const at::Tensor*& next, const std::vector<PyObject*>& given) : next_(next), given_(given) {}

  py::object build(const Shape& shape) {
    switch (shape.kind) {
      case Shape::Kind::Tensor:
        return py::reinterpret_steal<py::object>(THPVariable_Wrap(*next_++));
      case Shape::Kind::Constant:
        return shape.object;
      case Shape::Kind::Given:
        return borrowed(given_.at(shape.position));
      case Shape::Kind::Same:
        return objects_.at(shape.position);
      case Shape::Kind::Object:
        return build_object(shape);
      case Shape::Kind::Dict:
        return build_dict(shape);
      default:
        return build_sequence(shape);
    }
  }

 private:
  std::vector<py::object> build_children(const Shape& shape) {
    std::vector<py::object> children;
    for (const Shape& child : shape.children) children.push_back(build(child));
    return children;
  }

  py::object build_dict(const Shape& shape) {
    const std::vector<py::object> children = build_children(shape);
    py::dict made;
    for (size_t i = 0; i < children.size(); ++i) made[shape.keys[i]] = children[i];
    return made;
  }

  /// Known before its attributes are, which may be the object itself.
  py::object build_object(const Shape& shape) {
    auto made = py::reinterpret_steal<py::object>(PyBaseObject_Type.tp_new(
        reinterpret_cast<PyTypeObject*>(shape.object.ptr()), py::tuple().ptr(), nullptr));
    if (!made) throw py::error_already_set();
    if (objects_.size() <= shape.position) objects_.resize(shape.position + 1);
    objects_[shape.position] = made;
    set_attributes(shape, build_children(shape), made.ptr());
    return made;
  }

  py::object build_sequence(const Shape& shape) {
    const std::vector<py::object> children = build_children(shape);
    const bool is_tuple = shape.kind == Shape::Kind::Tuple;
    py::list items(children.size() - (is_tuple ? shape.keys.size() : 0));
    for (size_t i = 0; i < items.size(); ++i) items[i] = children[i];
    if (shape.kind == Shape::Kind::List) return items;
    if (!is_tuple) return py::tuple(shape.object)[0](items, py::tuple(shape.object)[1]);
    auto* type = reinterpret_cast<PyTypeObject*>(shape.object.ptr());
    if (type == &PyTuple_Type) return py::tuple(items);
    if (!is_class_of_tuples(type)) return shape.object(py::tuple(items));
    auto made =
        py::reinterpret_steal<py::object>(PyTuple_Type.tp_new(type, py::make_tuple(items).ptr(), nullptr));
    if (!made) throw py::error_already_set();
    set_attributes(shape, children, made.ptr());
    return made;
  }

  const at::Tensor*& next_;
  const std::vector<PyObject*>& given_;
  std::vector<py::object> objects_;
};

}  // namespace

py::object build(const Shape& shape, const at::Tensor*& next, const std::vector<PyObject*>& given) {
  return Builder(next, given).build(shape);
}

}  // namespace tandem::python
