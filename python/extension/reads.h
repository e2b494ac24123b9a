/// What a traced program could have read besides its arguments, compared at every call.
#pragma once

#include <c10/util/FunctionRef.h>

#include <set>
#include <unordered_set>

#include "ran_code.h"

namespace tandem::python {

/// A value as it was, without keeping alive what can be held weakly: an object that died is never the same as
/// another one.
class Held {
 public:
  explicit Held(PyObject* value);
  /// Whether `value` is what was held; numbers, strings and tuples of them may be equal ones.
  bool is(PyObject* value) const { return value == address_ ? is_alive() : equals(value); }
  bool is_alive() const { return !is_weak_ || PyWeakref_GET_OBJECT(keeper_.ptr()) == address_; }
  /// The reference that this owns, for the garbage collector.
  PyObject* owned() const { return keeper_.ptr(); }

 private:
  bool equals(PyObject* value) const;

  PyObject* address_;
  py::object keeper_;  ///< nothing for containers, whose contents are compared
  bool is_weak_ = false;
};

/// A holder of values and what it held. Those reached through others stand behind them, so that what is
/// looked at is alive.
struct Read {
  enum class Kind : uint8_t {
    /// one reference: a variable of an enclosing function, a slot, a class
    Pointer,
    Attributes,  ///< of a dict the names that code mentions
    ClassAttributes,
    Variables,  ///< certain names of a dict of globals
    Dict,       ///< all of a dict, in its order
    Sequence,   ///< a list or tuple
    Others,     ///< what has to be walked: sets, deques, ordered dicts
    Memory,     ///< bytes
    Context,    ///< a context variable
    Tensor,     ///< what programs ask tensors without reading their data
    Answer,     ///< what a function of torch's says of a setting
  };
  Kind kind;
  PyObject* holder = nullptr;
  PyObject** where = nullptr;    ///< of a pointer
  const char* what = "";         ///< for naming it
  PyObject* about = nullptr;     ///< for naming it: a class or the name of a variable
  PyTypeObject* type = nullptr;  ///< of a container
  uint64_t version = 0;          ///< of a dict, when it was last found unchanged
  uint32_t begin = 0, end = 0;   ///< its values, each behind its name where they have names
};

/// What programs ask tensors without reading their data.
struct TensorFacts {
  bool requires_grad;
  std::optional<bool> has_gradient;  ///< where code asks for it
  at::ScalarType dtype;
  at::Device device;
  at::DimVector sizes;
  static TensorFacts of(const at::Tensor& tensor, bool with_gradient);
  bool are_of(const at::Tensor& tensor) const;
};

/// Something that a trace changed, and so will change again: the whole of a container, or one name.
using Change = std::pair<PyObject*, PyObject*>;

/// Everything that code which ran could have read from what it was given. Made and used with the GIL held;
/// comparing runs no code of the user's.
class Reads {
 public:
  /// Notes what these and the codes noted before can read now, besides what a trace changed.
  void note(const std::vector<RanCode>& ran, const std::vector<py::object>& roots,
            const std::vector<Change>& changed);

  /// Whether all of it is as it was.
  bool hold();
  /// Whether something of it died, so that it will never be again.
  bool are_gone() const;
  /// A number for what is another than it was.
  size_t fingerprint();
  /// What the user calls the first thing that is another ("attribute beta of class Net"), or an empty string.
  std::string first_change();

  int visit(visitproc visit, void* argument) const;

  /// torch.compiler.is_compiling() is one thing that code reads: false for a program that fails where it is
  /// true.
  bool is_told = true;

 private:
  friend class ReadsWalk;
  /// The first that is another than it was, or null.
  Read* find_changed();
  bool roots_are_alive() const;
  bool is_untouched(const Read& read) const;
  bool is_same(Read& read);
  bool counts(const Read& read, PyObject* name, PyObject* value) const;
  /// What is held now, name (or null) and value each, until `visit` returns false; says whether it came to
  /// the end.
  bool each(const Read& read, c10::function_ref<bool(PyObject*, PyObject*)> visit) const;

  std::vector<RanCode> ran_;
  std::unordered_set<PyObject*> names_;  ///< that code mentions
  bool all_names_ = false;               ///< code asks for attributes by names that it computes
  std::set<Change> changed_;
  std::vector<Held> roots_;
  std::vector<Read> reads_;
  std::vector<Held> values_;
  std::vector<std::string> memory_;
  std::vector<TensorFacts> tensors_;
  std::vector<py::object> owned_;  ///< what the reads refer to by name
};

}  // namespace tandem::python
