/// What a Python function can change besides tensors, remembered while it is traced.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "buffers.h"
#include "contents.h"
#include "reads.h"

namespace tandem::python {

/// Everything that can be reached from a function and its arguments, as it is now: variables of enclosing
/// functions, globals that its code and the code of functions which it calls mention, attributes, and what
/// lists, dicts, sets and deques hold, to any depth. Torch's own insides and those of Python's library are
/// left out. Made and used with the GIL held; runs no code of the user's.
class Surroundings {
 public:
  /// What is walked from, under the user's name for it.
  using Roots = std::vector<std::pair<py::object, std::string>>;
  explicit Surroundings(Roots roots);

  /// Puts something in the place of each iterator that ends a trace which uses it; `restore` takes it away.
  void guard_iterators() const;

  struct Restored {
    /// in the user's words ("attribute step of class Net"), or nothing
    std::string what;
    std::vector<Change> changes;
  };
  /// Undoes what has changed.
  Restored restore() const;

  /// Whether this object is part of it.
  bool has(PyObject* object) const { return seen_.contains(object); }

  /// Tensors in which gradients gather.
  const Tensors& leaves() const { return leaves_; }

  /// Generators of random numbers among it: objects of Python's random module and of NumPy's.
  const std::vector<py::object>& generators() const { return generators_; }

 private:
  /// How something was found, for naming it: a step from another place.
  struct Place {
    enum class Step : uint8_t { Root, Same, Attribute, Item, Position, Variable };
    Step step = Step::Root;
    uint32_t from = 0;
    /// held by what was kept; of a variable of an enclosing function the code that has it
    PyObject* name = nullptr;
    size_t position = 0;
  };
  using Step = Place::Step;
  struct Kept {
    Holder kind;
    py::object holder;
    Contents contents;
    uint32_t place;
    PyTypeObject* owner = nullptr;  ///< whose attributes these are
  };
  struct Iterator {
    size_t kept, position;
    py::object guard;
  };
  struct Globals {
    py::object dict;
    std::vector<py::object> names;
  };
  struct Waiting {
    PyObject* object;
    uint32_t place;
  };
  using Names = std::vector<PyObject*>;

  void visit(PyObject* object, const Place& place);
  void walk(PyObject* object, uint32_t place);
  bool walk_wrapper(PyObject* object, uint32_t place);
  void walk_function(PyObject* function, uint32_t place);
  void walk_globals(PyObject* dict, const Names& mentioned, int depth);
  void walk_module(PyObject* module, const Names& mentioned, int depth);
  void walk_instance(PyObject* object, uint32_t place);
  void walk_class(PyTypeObject* type, uint32_t place);
  /// Whether an object of this type belongs to the user, or keeps state for one.
  bool keeps_state(PyTypeObject* type);
  bool is_users_code(PyObject* globals);
  void keep_bare(PyObject* object, uint32_t place);
  void keep(Holder kind, PyObject* holder, uint32_t place, PyTypeObject* owner = nullptr,
            const std::vector<py::object>& which = {});
  using Imported = std::unordered_set<std::string>;
  Imported imported_meanwhile() const;
  static void add_changes(const Kept& kept, const Contents& now, const Contents& then,
                          std::vector<Change>& to);
  std::string take_away_new_attributes(std::vector<Change>& changes) const;
  std::string take_away_new_globals(const Imported& imported, std::vector<Change>& changes) const;
  std::string put_back_classes() const;
  void put_back_iterators() const;
  std::string path(uint32_t place) const;
  std::string describe(const Kept& kept, const Contents& now, size_t difference) const;

  Roots roots_;
  std::vector<Kept> kept_;
  std::vector<Place> places_;
  std::vector<Waiting> waiting_;
  std::vector<py::object> bare_;  ///< tensors and functions that have no attributes
  std::vector<Globals> globals_;
  std::vector<std::pair<py::object, PyTypeObject*>> classes_;  ///< what the objects are
  Buffers buffers_;
  std::vector<Iterator> iterators_;
  py::dict modules_;  ///< that were imported already
  std::vector<py::object> generators_;
  Tensors leaves_;
  std::unordered_set<const void*> seen_;
  std::unordered_map<PyTypeObject*, bool> types_;
  std::unordered_map<PyObject*, bool> codes_;
  std::unordered_map<PyObject*, std::unordered_set<PyObject*>> variables_;  ///< of each dict of globals
  size_t items_ = 0;
};

}  // namespace tandem::python
