/// A Python function or module with what was compiled of it.
#pragma once

#include <tandem/compiled.h>

#include <list>
#include <unordered_map>

#include "program.h"
#include "runtime/novelty.h"

namespace tandem::python {

/// Called like the original; every combination of non-tensor arguments, surroundings and tensor signatures is
/// traced and compiled once. Used with the GIL held, which it lets go while compiled code runs.
class PythonCallable {
 public:
  PythonCallable(py::object original, py::list roots, Options options);

  py::object call(const py::args& args, const py::kwargs& kwargs);
  /// Traces and compiles without running.
  Explanation explain(const py::args& args, const py::kwargs& kwargs);

  /// Whether a call with these arguments would find compiled code.
  bool knows(const py::args& args, const py::kwargs& kwargs);

  const py::object& original() const { return original_.function; }

  // For the garbage collector: a program that reaches its own compiled form is a circle.
  int visit(visitproc visit, void* argument) const;
  void clear();

 private:
  /// What was compiled for arguments of one kind while what the program read besides them was the same.
  struct Variant {
    std::string key;
    std::shared_ptr<detail::Function> function;
    std::shared_ptr<Reads> reads;
    size_t calls = 0;
  };
  using Variants = std::list<Variant>;

  /// The variant for these arguments and what is around now, or null.
  const Variant* find(const Writer& writer);
  const Variant* add(Writer& writer, const py::args& args, const py::kwargs& kwargs);
  void erase(Variants::iterator variant);
  /// A number for these arguments and what is around now.
  size_t hash(const Writer& writer);
  /// The last variant for these arguments that served, or null.
  const Variant* last(const Writer& writer) const;
  static void write(Writer& writer, const py::args& args, const py::kwargs& kwargs);
  std::vector<std::string> name_arguments(const py::args& args, const py::kwargs& kwargs);
  std::string why_not() const;
  bool is_worth_compiling(const Writer& writer);
  py::object leave_to_original(const std::string& reason, const py::args& args, const py::kwargs& kwargs);
  py::object run_uncompiled(const Writer& writer, const py::args& args, const py::kwargs& kwargs);
  /// What the user calls the part of the key that is another than in the last call which was not compiled.
  std::string what_changed(const Writer& writer, const py::args& args, const py::kwargs& kwargs);

  Original original_;
  Options options_;
  Interned interned_;
  Variants variants_;  ///< most recently used first
  /// the last of each served last
  std::unordered_map<std::string, std::vector<Variants::iterator>> by_key_;
  bool warned_ = false;
  Novelty novelty_;
  size_t died_unpaid_ = 0;       ///< variants whose objects were gone before they had paid
  std::string last_uncompiled_;  ///< its key
  size_t uncompiled_calls_ = 0;
};

}  // namespace tandem::python
