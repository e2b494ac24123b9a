/// Numbers that Python's objects keep in plain memory: bytearrays, arrays, NumPy's arrays.
#pragma once

#include "tree.h"

namespace tandem::python {

/// Copies of small buffers, to be put back when a trace wrote to them.
class Buffers {
 public:
  /// Copies what `object` holds, if that can be written and is not large.
  void keep(PyObject* object);
  /// Undoes writes; says to what, or nothing.
  std::string restore() const;

 private:
  struct Kept {
    py::object holder;
    std::string bytes;
  };
  std::vector<Kept> kept_;
  size_t bytes_ = 0;
};

}  // namespace tandem::python
