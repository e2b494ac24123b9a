#include "buffers.h"

#include <torch/csrc/utils/pybind.h>

#include <cstring>

namespace tandem::python {
namespace {

constexpr size_t most_bytes_each = 1 << 20, most_bytes = 16 << 20;

/// A look at an object's memory, held no longer than needed: while it lasts, the object cannot grow.
class View {
 public:
  explicit View(PyObject* object)
      : there_(PyObject_GetBuffer(object, &buffer_, PyBUF_WRITABLE | PyBUF_STRIDES | PyBUF_FORMAT) == 0) {
    if (!there_) PyErr_Clear();
  }
  ~View() {
    if (there_) PyBuffer_Release(&buffer_);
  }
  View(const View&) = delete;

  /// Nothing where it cannot be written, or holds references rather than numbers.
  std::optional<std::string> read() const {
    if (!there_ || (buffer_.format && std::string_view(buffer_.format).find('O') != std::string_view::npos) ||
        size_t(buffer_.len) > most_bytes_each)
      return std::nullopt;
    std::string bytes(size_t(buffer_.len), '\0');
    if (PyBuffer_ToContiguous(bytes.data(), &buffer_, buffer_.len, 'C') != 0) throw py::error_already_set();
    return bytes;
  }
  bool is(const std::string& bytes) const {
    if (!there_ || size_t(buffer_.len) != bytes.size()) return false;
    return PyBuffer_IsContiguous(&buffer_, 'C') ? std::memcmp(buffer_.buf, bytes.data(), bytes.size()) == 0
                                                : read() == bytes;
  }
  void write(const std::string& bytes) {
    if (PyBuffer_FromContiguous(&buffer_, bytes.data(), Py_ssize_t(bytes.size()), 'C') != 0)
      throw py::error_already_set();
  }

 private:
  mutable Py_buffer buffer_{};
  const bool there_;
};

/// Bytearrays and arrays of Python's may have grown; those of NumPy's do not.
void resize(const py::object& holder, size_t bytes) {
  if (PyByteArray_Check(holder.ptr())) {
    PyByteArray_Resize(holder.ptr(), Py_ssize_t(bytes));
  } else if (py::hasattr(holder, "frombytes")) {
    holder.attr("__delitem__")(py::slice(py::none(), py::none(), py::none()));
    holder.attr("frombytes")(py::bytes(std::string(bytes, '\0')));
  }
}

}  // namespace

std::optional<std::string> bytes_of(PyObject* object) {
  return PyObject_CheckBuffer(object) ? View(object).read() : std::nullopt;
}

bool has_bytes(PyObject* object, const std::string& bytes) { return View(object).is(bytes); }

void Buffers::keep(PyObject* object) {
  auto bytes = View(object).read();
  if (!bytes || (bytes_ += bytes->size()) > most_bytes) return;
  kept_.push_back({py::reinterpret_borrow<py::object>(object), std::move(*bytes)});
}

std::string Buffers::restore(std::vector<std::pair<PyObject*, PyObject*>>& changes) const {
  std::string changed;
  for (const auto& [holder, bytes] : kept_) {
    auto now = View(holder.ptr()).read();
    if (now == bytes) continue;
    if (!now || now->size() != bytes.size()) resize(holder, bytes.size());
    View(holder.ptr()).write(bytes);
    changes.emplace_back(holder.ptr(), nullptr);
    changed = std::string("what a ") + Py_TYPE(holder.ptr())->tp_name + " holds";
  }
  return changed;
}

}  // namespace tandem::python
