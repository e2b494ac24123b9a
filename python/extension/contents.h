/// What something of Python's holds, read and written without running code of the user's.
#pragma once

#include "tree.h"

namespace tandem::python {

/// Ways to hold values.
enum class Holder : uint8_t { Dict, OrderedDict, List, Set, Deque, Cell, Variable, Slots, Class };

/// Values, under names where the holder has some; a value that is not there is a null.
struct Contents {
  std::vector<py::object> names, values;
};

/// The way in which `object` is a container that can change; nothing for any other object.
std::optional<Holder> container_kind(PyObject* object);

/// What `object` holds now. Variables are entries of a dict of globals, slots those of an object: of these,
/// `which` are read.
Contents read_contents(Holder kind, PyObject* object, const std::vector<py::object>& which = {});

void write_contents(Holder kind, PyObject* object, const Contents& contents);

/// Puts `value` where the contents that were read had the one at `position`.
void write_value(Holder kind, PyObject* object, const Contents& contents, size_t position, PyObject* value);

/// Whether a program would see no difference: one object, or numbers, strings and tuples of them that are
/// equal.
bool are_same(PyObject* a, PyObject* b);

/// Whether `object` surely holds what it held; false where that has to be looked at more closely.
bool holds_still(Holder kind, PyObject* object, const Contents& then);

/// The first name or position at which two contents differ; nothing when they are the same.
std::optional<size_t> first_difference(const Contents& now, const Contents& then);

}  // namespace tandem::python
