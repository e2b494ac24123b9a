/// A Python function or module with what was compiled of it.
#pragma once

#include <tandem/compiled.h>

#include <list>
#include <unordered_map>

#include "program.h"

namespace tandem::python {

/// Called like the original; every combination of non-tensor arguments, surroundings and tensor signatures is traced and compiled once. Used with the GIL held, which it lets go
/// while compiled code runs.
class PythonCallable {
 public:
  PythonCallable(py::object original, py::list roots, Options options);

  py::object call(const py::args& args, const py::kwargs& kwargs);
  /// Traces and compiles without running.
  Explanation explain(const py::args& args, const py::kwargs& kwargs);

  const py::object& original() const { return original_.function; }

  // For the garbage collector: a program that reaches its own compiled form is a circle.
  int visit(visitproc visit, void* argument) const;
  void clear();

 private:
  struct Variant {
    std::string key;
    std::shared_ptr<detail::Function> function;
    std::vector<py::object> still_there;     ///< weak references to what the key names by address, or the thing itself
    bool is_valid() const;
  };

  std::shared_ptr<detail::Function> find_or_add(Writer& writer, const py::args& args, const py::kwargs& kwargs);
  std::shared_ptr<detail::Function> add(Writer& writer, const py::args& args, const py::kwargs& kwargs);
  void write(Writer& writer, const py::args& args, const py::kwargs& kwargs) const;
  std::vector<std::string> name_arguments(const py::args& args, const py::kwargs& kwargs);
  std::string why_not() const;

  Original original_;
  Options options_;
  Interned interned_;
  std::list<Variant> variants_;              ///< most recently used first
  std::unordered_map<std::string, std::list<Variant>::iterator> by_key_;
  bool warned_ = false;
};

}  // namespace tandem::python
