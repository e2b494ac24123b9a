/// Python arguments and results taken apart into tensors and the rest, and put together again.
#pragma once

#include <pybind11/pybind11.h>
#include <tandem/graph.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace tandem::python {

namespace py = pybind11;

/// What a Python module calls `name`, for keeping in a static variable: never dropped, since the interpreter
/// may end before us.
PyObject* imported(const char* module, const char* name);

inline py::object borrowed(PyObject* object) { return py::reinterpret_borrow<py::object>(object); }

/// How a Python value is built around its tensors. Holds Python objects: made and dropped with the GIL held.
struct Shape {
  enum class Kind : uint8_t { Tensor, Constant, Given, Same, List, Tuple, Dict, Object, Registered };
  Kind kind = Kind::Constant;
  /// the constant; the type of a tuple or object; context and builder of a registered type
  py::object object;
  /// of a dict; names or slots of attributes, whose values are the last children
  std::vector<py::object> keys;
  std::vector<Shape> children;
  /// of a container that was given, or of an object, among all of them
  size_t position = 0;
};

/// Objects that stand in a signature by equality, each under a number of its own.
class Interned {
 public:
  /// Nothing when `object` cannot be hashed.
  std::optional<uint64_t> number_of(PyObject* object);

 private:
  py::dict numbers_;
};

/// Takes values apart: the tensors in order, and everything else as text that is equal for equal values.
class Writer {
 public:
  explicit Writer(Interned& interned) : interned_(interned) {}

  Tensors tensors;
  std::string key;
  /// that are equal to themselves alone; the key has their addresses
  std::vector<py::object> objects;
  /// why a call with these values is left to the original; empty when it need not be
  std::string eager_reason;
  std::vector<std::string>* names = nullptr;  ///< asked for: what the user calls each tensor
  std::string path;
  /// asked for: what the user calls the part of the key that begins there
  std::vector<std::pair<size_t, std::string>>* labels = nullptr;

  /// asked for: what can be changed and was taken apart
  std::vector<PyObject*>* containers = nullptr;
  /// containers that a result may be or hold, which then are the caller's own
  const std::unordered_map<PyObject*, size_t>* given = nullptr;

  /// objects, each of which is one object again
  std::unordered_map<PyObject*, size_t> taken_apart;

  void label(const std::string& name) { labels->emplace_back(key.size(), name); }
  void write(PyObject* value, Shape* shape = nullptr);
  void write_simple(char tag, const void* bytes, size_t size);
  void write_pointer(char tag, const void* pointer) { write_simple(tag, &pointer, sizeof pointer); }
  /// Numbers, strings, nones and tuples of them by value; false for anything else.
  bool write_constant(PyObject* value);

 private:
  void write_tensor(PyObject* value, Shape* shape);
  void write_sequence(PyObject* value, Shape* shape);
  void write_dict(PyObject* value, Shape* shape);
  bool write_dataclass(PyObject* value, Shape* shape);
  bool write_made_object(PyObject* value, Shape* shape);
  void write_object(PyObject* value, Shape* shape);
  void write_attributes(PyObject* value, Shape* shape);
  bool write_registered(PyObject* value, Shape* shape);
  void write_slice(PyObject* value);
  void write_opaque(PyObject* value);
  bool write_given(PyObject* value, Shape* shape);
  void write_child(PyObject* value, Shape* shape, const std::string& step);

  Interned& interned_;
};

/// Made by a class statement; types of C's have ways of their own to be made.
bool is_class_of_tuples(PyTypeObject* type);

/// Whether its type is one whose values hold no tensors.
bool is_plain(const py::object& constant);

/// Whether this tensor's class leaves operators as they are.
bool is_plain_tensor(PyObject* tensor);

/// The value that `shape` describes, around tensors from `next` on, which is moved past those used, and
/// containers that were given.
py::object build(const Shape& shape, const at::Tensor*& next, const std::vector<PyObject*>& given = {});

/// Whether `shape` holds containers that were given.
bool holds_given(const Shape& shape);

/// Why a result holds something whose tensors, if any, cannot be seen; empty when there is nothing like that.
std::string unseen_part(const Shape& shape);

/// A pointer to `value` that drops it with the GIL held, on whatever thread.
template <class T>
std::shared_ptr<const T> share(T value) {
  return std::shared_ptr<const T>(new T(std::move(value)), [](const T* kept) {
    if (!Py_IsInitialized()) return;  // the process ends: the interpreter took its objects along
    py::gil_scoped_acquire gil;
    delete kept;
  });
}

}  // namespace tandem::python
