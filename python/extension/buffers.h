/// Numbers that Python's objects keep in plain memory: bytearrays, arrays, NumPy's arrays.
#pragma once

#include <optional>

#include "tree.h"

namespace tandem::python {

/// What `object` holds in memory that can be written; nothing where it holds none, references, or much.
std::optional<std::string> bytes_of(PyObject* object);
bool has_bytes(PyObject* object, const std::string& bytes);

/// Copies of small buffers, to be put back when a trace wrote to them.
class Buffers {
 public:
  /// Copies what `object` holds, if that can be written and is not large.
  void keep(PyObject* object);
  /// Undoes writes; says to what, or nothing.
  std::string restore(std::vector<std::pair<PyObject*, PyObject*>>& changes) const;

 private:
  struct Kept {
    py::object holder;
    std::string bytes;
  };
  std::vector<Kept> kept_;
  size_t bytes_ = 0;
};

}  // namespace tandem::python
