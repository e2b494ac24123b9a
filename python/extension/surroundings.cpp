#include "surroundings.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <array>

#include "ownership.h"

namespace tandem::python {
namespace {

constexpr size_t most_items = 4'000'000;

/// What code mentions by name: globals, and attributes of what it has; comprehensions and inner functions are
/// code of their own.
void add_names(PyObject* code, std::vector<PyObject*>& names) {
  const auto* c = reinterpret_cast<PyCodeObject*>(code);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c->co_names); ++i)
    names.push_back(PyTuple_GET_ITEM(c->co_names, i));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c->co_consts); ++i)
    if (PyObject* constant = PyTuple_GET_ITEM(c->co_consts, i); PyCode_Check(constant))
      add_names(constant, names);
}

/// One of Python's own, which keeps where it is in places that nobody else sees; generators and open files
/// are among them.
bool is_iterator(PyObject* object) {
  return object && PyIter_Check(object) && !PyType_FastSubclass(Py_TYPE(object), Py_TPFLAGS_TYPE_SUBCLASS) &&
         !is_constant(object);
}

}  // namespace

Surroundings::Surroundings(Roots roots)
    : roots_(std::move(roots)),
      modules_(py::reinterpret_borrow<py::dict>(PyImport_GetModuleDict()).attr("copy")()) {
  for (size_t i = 0; i < roots_.size(); ++i)
    visit(roots_[i].first.ptr(), {.step = Step::Root, .position = i});
  static PyObject* const environment =
      py::object(py::module_::import("os").attr("environ").attr("_data")).release().ptr();
  // what is new there is libraries' doing
  keep(Holder::Variable, environment, 0, nullptr, read_contents(Holder::Dict, environment).names);
  for (size_t next = 0; next < waiting_.size(); ++next) walk(waiting_[next].object, waiting_[next].place);
  if (iterators_.empty()) return;
  static PyObject* const guard = imported("tandem._iterators", "Guard");
  for (Iterator& iterator : iterators_)
    iterator.guard = py::handle(guard)(kept_[iterator.kept].contents.values[iterator.position]);
}

void Surroundings::visit(PyObject* object, const Place& place) {
  if (!object || is_constant(object) || seen_.size() >= most_objects || !seen_.insert(object).second) return;
  waiting_.push_back({object, uint32_t(places_.size())});
  places_.push_back(place);
}

void Surroundings::walk(PyObject* object, uint32_t place) {
  if (auto kind = container_kind(object)) keep(*kind, object, place);
  for (Py_ssize_t i = 0; PyTuple_Check(object) && i < PyTuple_GET_SIZE(object); ++i)
    visit(PyTuple_GET_ITEM(object, i), {.step = Step::Position, .from = place, .position = size_t(i)});
  if (PyObject_CheckBuffer(object)) buffers_.keep(object);
  if (PyFunction_Check(object))
    walk_function(object, place);
  else if (PyType_Check(object))
    walk_class(reinterpret_cast<PyTypeObject*>(object), place);
  else if (!walk_wrapper(object, place))
    walk_instance(object, place);
}

/// Things that stand for another: methods, partial functions, decorators of Python's own.
bool Surroundings::walk_wrapper(PyObject* object, uint32_t place) {
  const Place inside{.step = Step::Same, .from = place};
  if (PyMethod_Check(object)) {
    visit(PyMethod_GET_SELF(object), inside);
    visit(PyMethod_GET_FUNCTION(object), inside);
    return true;
  }
  if (PyCFunction_Check(object)) {
    visit(PyCFunction_GET_SELF(object), inside);
    return true;
  }
  static const auto* const wrappers = new std::array{
      std::pair{type_named("functools", "partial"), std::vector{"func", "args", "keywords"}},
      std::pair{type_named("functools", "_lru_cache_wrapper"), std::vector{"__wrapped__"}},
      std::pair{type_named("functools", "cached_property"), std::vector{"func"}},
      std::pair{&PyStaticMethod_Type, std::vector{"__func__"}},
      std::pair{&PyClassMethod_Type, std::vector{"__func__"}},
      std::pair{&PyProperty_Type, std::vector{"fget", "fset"}},
  };
  for (const auto& [type, parts] : *wrappers) {
    if (!Py_IS_TYPE(object, type)) continue;
    // all of them are held by the wrapper
    for (const char* part : parts) visit(py::getattr(object, part, py::none()).ptr(), inside);
    return true;
  }
  return false;
}

void Surroundings::walk_function(PyObject* function, uint32_t place) {
  const Place inside{.step = Step::Same, .from = place};
  PyObject* cells = PyFunction_GET_CLOSURE(function);
  for (Py_ssize_t i = 0; cells && i < PyTuple_GET_SIZE(cells); ++i)
    visit(PyTuple_GET_ITEM(cells, i),
          {.step = Step::Variable, .name = PyFunction_GET_CODE(function), .position = size_t(i)});
  visit(PyFunction_GET_DEFAULTS(function), inside);
  visit(PyFunction_GET_KW_DEFAULTS(function), inside);
  // torch marks functions of its own when they are first called
  if (!is_users_code(PyFunction_GET_GLOBALS(function))) {
    if (PyObject** attributes = _PyObject_GetDictPtr(function); attributes && *attributes)
      visit(PyDict_GetItemString(*attributes, "__wrapped__"), inside);
    return;
  }
  keep_bare(function, place);
  Names mentioned;
  add_names(PyFunction_GET_CODE(function), mentioned);
  walk_globals(PyFunction_GET_GLOBALS(function), mentioned, 0);
  for (Py_ssize_t i = 0; cells && i < PyTuple_GET_SIZE(cells); ++i)
    walk_module(PyCell_GET(PyTuple_GET_ITEM(cells, i)), mentioned, 0);
}

/// A module of the user's is not walked as a whole: what matters of it are names that the code mentions.
void Surroundings::walk_module(PyObject* module, const Names& mentioned, int depth) {
  constexpr int deepest = 4;
  if (module && PyModule_Check(module) && depth < deepest && is_users_code(PyModule_GetDict(module)))
    walk_globals(PyModule_GetDict(module), mentioned, depth + 1);
}

void Surroundings::walk_globals(PyObject* dict, const Names& mentioned, int depth) {
  auto [at, is_new] = variables_.try_emplace(dict);
  if (is_new)
    globals_.push_back({py::reinterpret_borrow<py::object>(dict), read_contents(Holder::Dict, dict).names});
  auto& known = at->second;
  std::vector<py::object> fresh;
  Names modules;
  for (PyObject* name : mentioned) {
    PyObject* value = PyDict_GetItem(dict, name);
    if (!value) continue;
    if (PyModule_Check(value)) modules.push_back(value);
    if (known.insert(name).second) fresh.push_back(py::reinterpret_borrow<py::object>(name));
  }
  if (!fresh.empty()) keep(Holder::Variable, dict, 0, nullptr, fresh);
  for (PyObject* module : modules) walk_module(module, mentioned, depth);
}

void Surroundings::walk_instance(PyObject* object, uint32_t place) {
  PyTypeObject* type = Py_TYPE(object);
  if (THPVariable_Check(object)) {
    if (const at::Tensor& tensor = THPVariable_Unpack(object); tensor.requires_grad() && tensor.is_leaf())
      leaves_.push_back(tensor);
    return keep_bare(object, place);
  }
  if (is_random_generator(object)) generators_.push_back(py::reinterpret_borrow<py::object>(object));
  if (!keeps_state(type)) return;
  auto attributes = py::reinterpret_steal<py::object>(PyObject_GenericGetDict(object, nullptr));
  if (!attributes)
    PyErr_Clear();
  else if (seen_.insert(attributes.ptr()).second)
    keep(Holder::Dict, attributes.ptr(), place, type);
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return;
  classes_.emplace_back(py::reinterpret_borrow<py::object>(object), type);
  if (auto slots = slots_of(type); !slots.empty()) keep(Holder::Slots, object, place, type, slots);
  visit(reinterpret_cast<PyObject*>(type), {.step = Step::Same, .from = place});
}

void Surroundings::walk_class(PyTypeObject* type, uint32_t place) {
  for (Py_ssize_t i = 0; type->tp_mro && i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    if (!(base->tp_flags & Py_TPFLAGS_HEAPTYPE) || (base != type && !seen_.insert(base).second)) continue;
    if (is_user_module_name(PyDict_GetItemString(base->tp_dict, "__module__")))
      keep(Holder::Class, reinterpret_cast<PyObject*>(base), place, base);
  }
}

/// Most functions and tensors have no attributes of the user's, and need not be given any.
void Surroundings::keep_bare(PyObject* object, uint32_t place) {
  PyObject** attributes = _PyObject_GetDictPtr(object);
  if (!attributes || !*attributes)
    bare_.push_back(py::reinterpret_borrow<py::object>(object));
  else if (seen_.insert(*attributes).second)
    keep(Holder::Dict, *attributes, place, Py_TYPE(object));
}

bool Surroundings::is_users_code(PyObject* globals) {
  auto [known, is_new] = codes_.try_emplace(globals, false);
  if (is_new) known->second = is_user_module_name(module_name_of(globals));
  return known->second;
}

bool Surroundings::keeps_state(PyTypeObject* type) {
  auto [known, is_new] = types_.try_emplace(type, false);
  if (!is_new) return known->second;
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return known->second = is_namespace(type);
  PyObject* of = PyDict_GetItemString(type->tp_dict, "__module__");
  if (is_user_module_name(of) || is_kept_part_of_torch(type)) return known->second = true;
  std::string_view name = PyUnicode_AsUTF8(of);
  for (std::string_view part : {"argparse", "weakref", "collections"})
    if (name == part || (name.starts_with(part) && name[part.size()] == '.')) return known->second = true;
  return false;
}

void Surroundings::keep(Holder kind, PyObject* holder, uint32_t place, PyTypeObject* owner,
                        const std::vector<py::object>& which) {
  if (items_ > most_items) return;
  kept_.push_back(
      {kind, py::reinterpret_borrow<py::object>(holder), read_contents(kind, holder, which), place, owner});
  const Contents& contents = kept_.back().contents;
  items_ += contents.values.size();
  const Step step = kind == Holder::Variable ? Step::Variable
                    : kind == Holder::Cell   ? Step::Same
                    : owner                  ? Step::Attribute
                    : contents.names.empty() ? Step::Position
                                             : Step::Item;
  // Only what is put back can have another owner when it is done; until then its addresses stay its own.
  for (size_t i = 0; i < contents.values.size(); ++i) {
    PyObject* name = contents.names.empty() ? nullptr : contents.names[i].ptr();
    if (is_iterator(contents.values[i].ptr()) && kind != Holder::Set &&
        !keeps_state(Py_TYPE(contents.values[i].ptr())))
      iterators_.push_back({kept_.size() - 1, i, {}});
    visit(contents.values[i].ptr(), {.step = step, .from = place, .name = name, .position = i});
    if (step == Step::Item) visit(name, {.step = Step::Same, .from = place});
  }
}

}  // namespace tandem::python
