/// Finding what code that ran could have read.
#pragma once

#include <map>
#include <unordered_map>

#include "reads.h"

namespace tandem::python {

/// Nearest first: from functions, their variables and arguments on, by names that code mentions.
class ReadsWalk {
 public:
  explicit ReadsWalk(Reads& to);

  /// Code that did not run yet and will in a backward, found on the way.
  std::vector<RanCode> later;

  void run(const std::vector<py::object>& roots);

 private:
  using Kind = Read::Kind;
  /// How far a variable is followed.
  enum class Depth : uint8_t { Function, Value, Everything };
  PyObject* own(PyObject* object);
  void visit(PyObject* object);
  void hold(PyObject* value) { to_.values_.emplace_back(value); }
  /// Reads what it holds now, and visits that.
  void add(Read read, bool visits = true);
  void pointer(PyObject* holder, PyObject** where, const char* what, PyObject* about = nullptr,
               bool visits = true);
  void walk(PyObject* object);
  void walk_contents(PyObject* object);
  /// Lazy modules make another class of their parameters.
  void walk_tensor(PyObject* object);
  void read_class(PyObject* object);
  void walk_attributes(PyObject* object);
  void walk_instance(PyObject* object);
  /// Of torch's own objects those that programs change.
  bool is_watched(PyTypeObject* type);
  void walk_class(PyTypeObject* type);
  /// What did not run is only what it is, and its attributes; torch marks functions of its own when they are
  /// first called.
  void walk_function(PyObject* object);
  void note_backward(PyTypeObject* type, PyObject* backward);
  void runs_later(PyObject* function);
  /// Wrappers of Python's own: methods, partial functions, properties, views of dicts.
  void walk_native(PyObject* object);
  using Mentioned = std::vector<std::pair<PyObject*, Depth>>;
  /// The library's own variables are its business, but for functions, which may be replaced.
  void mention_globals();
  /// A module is not walked as a whole: what matters of it are names that the code mentions.
  void mention_module(PyObject* module, const std::vector<PyObject*>& names, bool is_users,
                      std::unordered_set<PyObject*>& known);
  void mention(PyObject* dict, PyObject* name, Depth depth);
  void walk_module(PyObject* dict);
  void read_variables(PyObject* dict, const Mentioned& names);
  void read_environment();
  void read_settings();

  Reads& to_;
  std::unordered_set<const void*> codes_, seen_;
  std::vector<PyObject*> waiting_;
  bool asks_for_gradients_ = false;
  bool registers_hooks_ = false;  ///< a hook may be any function that the code can reach
  std::unordered_map<PyTypeObject*, bool> types_;
  std::vector<PyObject*> dicts_;  ///< of globals and modules
  std::unordered_map<PyObject*, Mentioned> mentioned_;
  std::map<std::pair<PyObject*, PyObject*>, size_t> positions_;
};

}  // namespace tandem::python
