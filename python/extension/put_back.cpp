// Putting back what a trace changed, and saying what that was.
#include <torch/csrc/utils/pybind.h>

#include "surroundings.h"

namespace tandem::python {
namespace {

std::string text_of(PyObject* name) {
  if (Py_IS_TYPE(name, &PyMemberDescr_Type)) return py::str(py::handle(name).attr("__name__"));
  if (PyBytes_Check(name)) return PyBytes_AS_STRING(name);
  return PyUnicode_Check(name) ? std::string(py::str(py::handle(name))) : std::string("?");
}

std::string shown_key(PyObject* key) {
  return PyUnicode_CheckExact(key) || PyLong_CheckExact(key) ? std::string(py::repr(py::handle(key)))
                                                             : std::string("a ") + Py_TYPE(key)->tp_name;
}

/// Without the name of its module.
std::string class_name(PyTypeObject* type) {
  std::string_view name = type->tp_name;
  return std::string(name.substr(name.rfind('.') + 1));
}

/// Whether a module that was imported meanwhile has made this: it will not be imported again, so what it
/// registered stays.
bool comes_from(const std::unordered_set<std::string>& imported, PyObject* value) {
  if (imported.empty() || !value) return false;
  if (PyModule_Check(value)) return true;
  for (py::handle from : {py::handle(value), py::handle(reinterpret_cast<PyObject*>(Py_TYPE(value)))}) {
    if (!PyFunction_Check(from.ptr()) && !PyType_Check(from.ptr())) continue;
    py::object module = py::getattr(from, "__module__", py::none());
    if (PyUnicode_Check(module.ptr()) && imported.contains(py::str(module))) return true;
  }
  return false;
}

/// What was, and what imported modules added to its end.
Contents with_imported(const Contents& then, const Contents& now,
                       const std::unordered_set<std::string>& imported) {
  Contents wanted = then;
  for (size_t i = then.values.size(); i < now.values.size() && comes_from(imported, now.values[i].ptr());
       ++i) {
    wanted.values.push_back(now.values[i]);
    if (!now.names.empty()) wanted.names.push_back(now.names[i]);
  }
  return wanted;
}

}  // namespace

Surroundings::Imported Surroundings::imported_meanwhile() const {
  Imported names;
  PyObject* now = PyImport_GetModuleDict();
  if (PyDict_GET_SIZE(now) == PyDict_GET_SIZE(modules_.ptr())) return names;
  for (auto [name, module] : py::reinterpret_borrow<py::dict>(now))
    if (!modules_.contains(name)) names.insert(py::str(name));
  return names;
}

void Surroundings::guard_iterators() const {
  for (const auto& [at, position, guard] : iterators_)
    write_value(kept_[at].kind, kept_[at].holder.ptr(), kept_[at].contents, position, guard.ptr());
}

void Surroundings::put_back_iterators() const {
  for (const auto& [at, position, guard] : iterators_) {
    const auto& [kind, holder, contents, place, owner] = kept_[at];
    const Contents now = read_contents(kind, holder.ptr(), contents.names);
    if (position < now.values.size() && now.values[position].is(guard))
      write_value(kind, holder.ptr(), now, position, contents.values[position].ptr());
  }
}

/// One name each of attributes and variables; the whole of a container.
void Surroundings::add_changes(const Kept& kept, const Contents& now, const Contents& then,
                               std::vector<Change>& to) {
  PyObject* holder = kept.kind == Holder::Class ? reinterpret_cast<PyTypeObject*>(kept.holder.ptr())->tp_dict
                                                : kept.holder.ptr();
  const bool has_names = kept.owner || (kept.kind == Holder::Variable && !PyBytes_Check(then.names[0].ptr()));
  if (!has_names) return to.push_back({holder, nullptr});
  std::unordered_map<PyObject*, PyObject*> values;
  for (size_t i = 0; i < then.names.size(); ++i) values[then.names[i].ptr()] = then.values[i].ptr();
  for (size_t i = 0; i < now.names.size(); ++i) {
    auto known = values.find(now.names[i].ptr());
    if (known == values.end() || !are_same(known->second, now.values[i].ptr()))
      to.push_back({holder, now.names[i].ptr()});
    if (known != values.end()) values.erase(known);
  }
  for (auto [name, value] : values) to.push_back({holder, name});
}

Surroundings::Restored Surroundings::restore() const {
  std::vector<Change> changes;
  std::string changed = put_back_classes();  // slots are those of a class
  put_back_iterators();
  const Imported imported = imported_meanwhile();
  for (const Kept& kept : kept_) {
    if (holds_still(kept.kind, kept.holder.ptr(), kept.contents)) continue;
    Contents now = read_contents(kept.kind, kept.holder.ptr(), kept.contents.names);
    const Contents wanted = with_imported(kept.contents, now, imported);
    auto difference = first_difference(now, wanted);
    if (!difference) continue;
    if (changed.empty()) changed = describe(kept, now, *difference);
    add_changes(kept, now, wanted, changes);
    write_contents(kept.kind, kept.holder.ptr(), wanted);
  }
  for (const std::string& more : {take_away_new_attributes(changes), take_away_new_globals(imported, changes),
                                  buffers_.restore(changes)})
    if (changed.empty()) changed = more;
  return {std::move(changed), std::move(changes)};
}

std::string Surroundings::put_back_classes() const {
  std::string changed;
  for (const auto& [object, type] : classes_) {
    if (Py_TYPE(object.ptr()) == type) continue;
    if (PyObject_GenericSetAttr(object.ptr(), py::str("__class__").ptr(),
                                reinterpret_cast<PyObject*>(type)) != 0)
      throw py::error_already_set();
    changed = "the class of a " + class_name(type);
  }
  return changed;
}

std::string Surroundings::take_away_new_attributes(std::vector<Change>& changes) const {
  std::string changed;
  for (const py::object& object : bare_) {
    PyObject** attributes = _PyObject_GetDictPtr(object.ptr());
    if (!attributes || !*attributes || PyDict_GET_SIZE(*attributes) == 0) continue;
    changed = "attribute " + text_of(read_contents(Holder::Dict, *attributes).names[0].ptr()) +
              (PyFunction_Check(object.ptr()) ? " of a function" : " of a tensor");
    changes.push_back({object.ptr(), nullptr});
    PyDict_Clear(*attributes);
  }
  return changed;
}

/// What imports brought stays, and what Python itself adds (a registry of warnings).
std::string Surroundings::take_away_new_globals(const Imported& imported,
                                                std::vector<Change>& changes) const {
  std::string changed;
  for (const auto& [dict, names] : globals_) {
    if (PyDict_GET_SIZE(dict.ptr()) == Py_ssize_t(names.size())) continue;
    std::unordered_set<PyObject*> old;
    for (const py::object& name : names) old.insert(name.ptr());
    Contents now = read_contents(Holder::Dict, dict.ptr());
    for (size_t i = 0; i < now.names.size(); ++i) {
      PyObject* name = now.names[i].ptr();
      if (old.contains(name) || PyModule_Check(now.values[i].ptr()) ||
          comes_from(imported, now.values[i].ptr()) || text_of(name).starts_with("__"))
        continue;
      changed = "the global " + text_of(name);
      changes.push_back({dict.ptr(), name});
      PyDict_DelItem(dict.ptr(), name);
    }
  }
  return changed;
}

std::string Surroundings::describe(const Kept& kept, const Contents& now, size_t difference) const {
  const Contents& named = difference < kept.contents.names.size() ? kept.contents : now;
  const std::string name = difference < named.names.size() ? (kept.owner || kept.kind == Holder::Variable
                                                                  ? text_of(named.names[difference].ptr())
                                                                  : shown_key(named.names[difference].ptr()))
                                                           : "";
  if (kept.kind == Holder::Variable)
    return (PyBytes_Check(named.names[difference].ptr()) ? "the environment variable " : "the global ") +
           name;
  if (kept.kind == Holder::Cell) return "the variable " + path(kept.place) + " of an enclosing function";
  if (kept.owner && kept.owner == &PyFunction_Type) return "attribute " + name + " of a function";
  if (kept.owner) return "attribute " + name + " of class " + class_name(kept.owner);
  const char* what = kept.kind == Holder::List    ? "list"
                     : kept.kind == Holder::Set   ? "set"
                     : kept.kind == Holder::Deque ? "deque"
                                                  : "dict";
  return "the " + std::string(what) + " " + path(kept.place);
}

/// As the program writes it, from the nearest variable on.
std::string Surroundings::path(uint32_t place) const {
  const Place& at = places_[place];
  switch (at.step) {
    case Step::Root:
      return roots_[at.position].second;
    case Step::Same:
      return path(at.from);
    case Step::Variable:
      return PyCode_Check(at.name)
                 ? text_of(py::tuple(py::handle(at.name).attr("co_freevars"))[at.position].ptr())
                 : text_of(at.name);
    case Step::Attribute:
      return path(at.from) + "." + text_of(at.name);
    case Step::Item:
      return path(at.from) + "[" + shown_key(at.name) + "]";
    case Step::Position:
      return path(at.from) + "[" + std::to_string(at.position) + "]";
  }
  return {};
}

}  // namespace tandem::python
