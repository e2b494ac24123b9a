/// A Python function or module with what was compiled of it.
#pragma once

#include <tandem/compiled.h>

#include <list>
#include <unordered_map>

#include "program.h"
#include "runtime/novelty.h"

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
    size_t calls = 0;
    bool is_valid() const;
  };

  /// The variant for these arguments, or null.
  std::shared_ptr<detail::Function> find(const Writer& writer);
  std::shared_ptr<detail::Function> add(Writer& writer, const py::args& args, const py::kwargs& kwargs);
  void write(Writer& writer, const py::args& args, const py::kwargs& kwargs) const;
  std::vector<std::string> name_arguments(const py::args& args, const py::kwargs& kwargs);
  std::string why_not() const;
  bool is_worth_compiling(const Writer& writer);
  py::object run_uncompiled(const Writer& writer, const py::args& args, const py::kwargs& kwargs);
  /// What the user calls the part of the key that is another than in the last call which was not compiled.
  std::string what_changed(const Writer& writer, const py::args& args, const py::kwargs& kwargs);

  Original original_;
  Options options_;
  Interned interned_;
  std::list<Variant> variants_;              ///< most recently used first
  std::unordered_map<std::string, std::list<Variant>::iterator> by_key_;
  bool warned_ = false;
  Novelty novelty_;
  size_t died_unpaid_ = 0;                   ///< variants whose objects were gone before they had paid
  std::string last_uncompiled_;              ///< its key
  size_t uncompiled_calls_ = 0;
};

}  // namespace tandem::python
