// Finding what code that ran could have read.
#include <structmember.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <array>
#include <map>
#include <unordered_map>

#include "buffers.h"
#include "code_names.h"
#include "contents.h"
#include "ownership.h"
#include "reads.h"

namespace tandem::python {
namespace {

bool is_function(PyObject* object) { return PyFunction_Check(object) || PyCFunction_Check(object); }

}  // namespace

/// Nearest first: from functions, their variables and arguments on, by names that code mentions.
class ReadsWalk {
 public:
  explicit ReadsWalk(Reads& to) : to_(to) {
    for (const RanCode& ran : to_.ran_) codes_.insert(ran.code.ptr());
  }

  void run(const std::vector<py::object>& roots) {
    for (const py::object& root : roots) {
      to_.roots_.emplace_back(root.ptr());
      visit(root.ptr());
    }
    mention_globals();
    for (PyObject* dict : dicts_) read_variables(dict, mentioned_[dict]);
    read_environment();
    for (size_t next = 0; next < waiting_.size(); ++next) walk(waiting_[next]);
  }

 private:
  using Kind = Read::Kind;
  /// How far a variable is followed.
  enum class Depth : uint8_t { Function, Value, Everything };

  PyObject* own(PyObject* object) {
    to_.owned_.push_back(py::reinterpret_borrow<py::object>(object));
    return object;
  }

  void visit(PyObject* object) {
    const bool is_module = object && PyModule_Check(object) && is_user_module_name(module_name_of(PyModule_GetDict(object)));
    if (object && (is_module || !is_constant(object)) && seen_.size() < most_objects && seen_.insert(object).second) waiting_.push_back(object);
  }

  void hold(PyObject* value) { to_.values_.emplace_back(value); }

  /// Reads what it holds now, and visits that.
  void add(Read read, bool visits = true) {
    read.begin = uint32_t(to_.values_.size());
    if (read.kind != Kind::Pointer && read.kind != Kind::Context) read.type = Py_TYPE(read.holder);
    std::vector<PyObject*> found;
    to_.each(read, [&](PyObject* name, PyObject* value) {
      if (name) hold(name);
      hold(value);
      if (visits) found.push_back(name && read.kind == Kind::Dict ? name : nullptr), found.push_back(value);
      return true;
    });
    read.end = uint32_t(to_.values_.size());
    to_.reads_.push_back(read);
    to_.is_same(to_.reads_.back());          // notes the version
    for (PyObject* value : found) visit(value);
  }

  void pointer(PyObject* holder, PyObject** where, const char* what, PyObject* about = nullptr, bool visits = true) {
    if (!to_.changed_.contains({holder, nullptr})) add({.kind = Kind::Pointer, .holder = holder, .where = where, .what = what, .about = about}, visits);
  }

  void walk(PyObject* object) {
    if (to_.changed_.contains({object, nullptr})) return;
    if (PyFunction_Check(object)) return walk_function(object);
    if (PyModule_Check(object)) return walk_module(PyModule_GetDict(object));
    if (PyType_Check(object)) return walk_class(reinterpret_cast<PyTypeObject*>(object));
    if (is_random_generator(object)) return;
    if (THPVariable_Check(object)) return walk_tensor(object);
    walk_contents(object);
    if (PyWeakref_Check(object)) {
      auto* reference = reinterpret_cast<PyWeakReference*>(object);
      pointer(object, &reference->wr_object, "what a weak reference refers to");
    } else if (PyContextVar_CheckExact(object)) {
      add({.kind = Kind::Context, .holder = object, .what = "a context variable"});
    } else if (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE || is_namespace(Py_TYPE(object))) {
      walk_instance(object);
    }
    walk_native(object);
  }

  void walk_contents(PyObject* object) {
    if (PyODict_Check(object) && PyDict_GET_SIZE(object) > 1) add({.kind = Kind::Others, .holder = object});
    else if (PyDict_Check(object)) add({.kind = Kind::Dict, .holder = object});
    else if (PyList_Check(object) || PyTuple_Check(object)) add({.kind = Kind::Sequence, .holder = object});
    else if (PyAnySet_Check(object) || container_kind(object) == Holder::Deque) add({.kind = Kind::Others, .holder = object});
    if (auto bytes = bytes_of(object)) {
      const auto at = uint32_t(to_.memory_.size());
      to_.memory_.push_back(std::move(*bytes));
      to_.reads_.push_back({.kind = Kind::Memory, .holder = object, .type = Py_TYPE(object), .begin = at, .end = at});
    }
  }

  /// Lazy modules make another class of their parameters.
  void walk_tensor(PyObject* object) {
    if (!is_plain_tensor(object)) return read_class(object);
    const at::Tensor& tensor = THPVariable_Unpack(object);
    const auto at = uint32_t(to_.tensors_.size());
    to_.tensors_.push_back(TensorFacts::of(tensor));
    to_.reads_.push_back({.kind = Kind::Tensor, .holder = object, .what = "what is known of a tensor", .begin = at, .end = at});
    walk_attributes(object);
  }

  void read_class(PyObject* object) {
    auto* type = own(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    pointer(object, reinterpret_cast<PyObject**>(&object->ob_type), "the class of a ", type, false);
  }

  void walk_attributes(PyObject* object) {
    PyObject** attributes = _PyObject_GetDictPtr(object);
    if (!attributes) return;
    auto* type = own(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    if (!*attributes && THPVariable_Check(object)) return pointer(object, attributes, "an attribute of a ", type, false);
    py::object made = py::reinterpret_steal<py::object>(PyObject_GenericGetDict(object, nullptr));
    if (!made) return PyErr_Clear();
    pointer(object, attributes, "the attributes of a ", type, false);
    if (seen_.insert(*attributes).second) add({.kind = Kind::Attributes, .holder = *attributes, .about = type});
  }

  void walk_instance(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    if (!is_watched(type)) return;
    read_class(object);
    walk_attributes(object);
    for (const py::object& slot : slots_of(type)) {
      const PyMemberDef* member = reinterpret_cast<PyMemberDescrObject*>(slot.ptr())->d_member;
      if (member->type != T_OBJECT_EX || to_.changed_.contains({object, slot.ptr()})) continue;
      auto* where = reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + member->offset);
      pointer(object, where, "attribute ", own(py::str(member->name).ptr()));
    }
    visit(reinterpret_cast<PyObject*>(type));
  }

  /// Of torch's own objects those that programs change.
  bool is_watched(PyTypeObject* type) {
    auto [known, is_new] = types_.try_emplace(type, true);
    if (is_new && type->tp_flags & Py_TPFLAGS_HEAPTYPE)
      known->second = !is_foreign_module_name(PyDict_GetItemString(type->tp_dict, "__module__")) || is_kept_part_of_torch(type);
    return known->second;
  }

  void walk_class(PyTypeObject* type) {
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return;
    auto* object = reinterpret_cast<PyObject*>(type);
    pointer(object, &type->tp_mro, "the bases of class ", own(object), false);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
      auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
      if (!(base->tp_flags & Py_TPFLAGS_HEAPTYPE) || !seen_.insert(base->tp_dict).second) continue;
      add({.kind = Kind::ClassAttributes, .holder = base->tp_dict, .about = own(reinterpret_cast<PyObject*>(base))}, is_watched(base));
    }
    if (Py_TYPE(object) != &PyType_Type) visit(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  }

  /// What did not run is only what it is, and its attributes; torch marks functions of its own when they are first called.
  void walk_function(PyObject* object) {
    auto* function = reinterpret_cast<PyFunctionObject*>(object);
    if (is_user_module_name(module_name_of(function->func_globals))) {
      pointer(object, &function->func_dict, "an attribute of a function", nullptr, false);
      if (function->func_dict && seen_.insert(function->func_dict).second)
        add({.kind = Kind::Attributes, .holder = function->func_dict, .about = own(reinterpret_cast<PyObject*>(&PyFunction_Type))});
    }
    if (!codes_.contains(function->func_code)) return;
    pointer(object, &function->func_code, "the code of a function");
    pointer(object, &function->func_defaults, "a default argument");
    pointer(object, &function->func_kwdefaults, "a default argument");
    PyObject* cells = function->func_closure;
    PyObject* names = reinterpret_cast<PyCodeObject*>(function->func_code)->co_localsplusnames;
    const Py_ssize_t first = PyTuple_GET_SIZE(names) - (cells ? PyTuple_GET_SIZE(cells) : 0);
    for (Py_ssize_t i = 0; cells && i < PyTuple_GET_SIZE(cells); ++i) {
      PyObject* cell = PyTuple_GET_ITEM(cells, i);
      if (!seen_.insert(cell).second) continue;
      pointer(cell, &reinterpret_cast<PyCellObject*>(cell)->ob_ref, "the variable ", own(PyTuple_GET_ITEM(names, first + i)));
      if (PyObject* module = PyCell_GET(cell); module && PyModule_Check(module)) walk_module(PyModule_GetDict(module));
    }
  }

  /// Wrappers of Python's own: methods, partial functions, properties, views of dicts.
  void walk_native(PyObject* object) {
    static PyTypeObject* const memory = type_named("functools", "_lru_cache_wrapper");
    static PyTypeObject* const of_python = type_named("tandem._iterators", "Guard");
    if (Py_IS_TYPE(object, memory)) return visit(py::getattr(object, "__wrapped__", py::none()).ptr());
    if (PyDict_Check(object) || PyList_Check(object) || PyTuple_Check(object) || PyAnySet_Check(object) || PyIter_Check(object)) return;
    if (PyGen_Check(object) || PyCoro_CheckExact(object) || PyFrame_Check(object) || is_namespace(Py_TYPE(object))) return;
    const PyTypeObject* type = Py_TYPE(object);
    while (type && type->tp_traverse == of_python->tp_traverse) type = type->tp_base;   // what class statements added was walked
    if (!type || !type->tp_traverse) return;
    type->tp_traverse(object, [](PyObject* part, void* walk) { return static_cast<ReadsWalk*>(walk)->visit(part), 0; }, this);
  }

  using Mentioned = std::vector<std::pair<PyObject*, Depth>>;

  /// The library's own variables are its business, but for functions, which may be replaced.
  void mention_globals() {
    for (const RanCode& ran : to_.ran_) {
      const bool is_users = is_user_module_name(module_name_of(ran.globals.ptr()));
      const std::vector<PyObject*> attributes = attribute_names(ran.code.ptr());
      std::unordered_set<PyObject*> modules;
      for (PyObject* name : global_names(ran.code.ptr())) {
        mention(ran.globals.ptr(), name, is_users ? Depth::Everything : Depth::Function);
        mention_module(PyDict_GetItemWithError(ran.globals.ptr(), name), attributes, is_users, modules);
      }
    }
  }

  /// A module is not walked as a whole: what matters of it are names that the code mentions.
  void mention_module(PyObject* module, const std::vector<PyObject*>& names, bool is_users, std::unordered_set<PyObject*>& known) {
    if (!module || !PyModule_Check(module) || !known.insert(module).second) return;
    PyObject* dict = PyModule_GetDict(module);
    const Depth depth = !is_users ? Depth::Function : is_foreign_module_name(module_name_of(dict)) ? Depth::Value : Depth::Everything;
    for (PyObject* name : names) {
      PyObject* value = PyDict_GetItemWithError(dict, name);
      if (value) mention(dict, name, depth);
      mention_module(value, names, is_users, known);
    }
  }

  void mention(PyObject* dict, PyObject* name, Depth depth) {
    auto [variables, is_new] = mentioned_.try_emplace(dict);
    if (is_new) dicts_.push_back(own(dict));
    auto [at, is_first] = positions_.try_emplace({dict, name}, variables->second.size());
    if (is_first) variables->second.emplace_back(name, depth);
    else variables->second[at->second].second = std::max(variables->second[at->second].second, depth);
  }

  void walk_module(PyObject* dict) {
    Mentioned names;
    PyObject *name, *value;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &name, &value);)
      if (to_.names_.contains(name)) names.emplace_back(name, is_foreign_module_name(module_name_of(dict)) ? Depth::Value : Depth::Everything);
    read_variables(dict, names);
  }

  void read_variables(PyObject* dict, const Mentioned& names) {
    Read read{.kind = Kind::Variables, .holder = dict, .type = Py_TYPE(dict), .begin = uint32_t(to_.values_.size())};
    std::vector<PyObject*> found;
    for (auto [name, depth] : names) {
      PyObject* value = PyDict_GetItemWithError(dict, name);
      // Hooks on all modules are variables of torch's that users fill.
      if (depth == Depth::Function && value && PyDict_Check(value) && std::string_view(PyUnicode_AsUTF8(name)).starts_with("_global_")) depth = Depth::Everything;
      if (to_.changed_.contains({dict, name}) || (depth == Depth::Function && !(value && is_function(value)))) continue;
      hold(name);
      hold(value);
      if (depth == Depth::Everything || (value && PyFunction_Check(value))) found.push_back(value);
    }
    read.end = uint32_t(to_.values_.size());
    if (read.begin == read.end) return;
    to_.reads_.push_back(read);
    to_.is_same(to_.reads_.back());
    for (PyObject* value : found) visit(value);
  }

  void read_environment() {
    static PyObject* const variables = py::object(py::module_::import("os").attr("environ").attr("_data")).release().ptr();
    static PyObject* const name = PyUnicode_InternFromString("environ");
    if (to_.names_.contains(name)) visit(variables);
  }

  Reads& to_;
  std::unordered_set<const void*> codes_, seen_;
  std::vector<PyObject*> waiting_;
  std::unordered_map<PyTypeObject*, bool> types_;
  std::vector<PyObject*> dicts_;             ///< of globals and modules
  std::unordered_map<PyObject*, Mentioned> mentioned_;
  std::map<std::pair<PyObject*, PyObject*>, size_t> positions_;
};

void Reads::note(const std::vector<RanCode>& ran, const std::vector<py::object>& roots, const std::vector<Change>& changed) {
  Reads next;
  next.ran_ = ran_;
  std::unordered_set<PyObject*> known;
  for (const RanCode& code : ran_) known.insert(code.code.ptr());
  for (const RanCode& code : ran)
    if (known.insert(code.code.ptr()).second) next.ran_.push_back(code);
  next.changed_ = changed_;
  next.changed_.insert(changed.begin(), changed.end());
  for (const RanCode& code : next.ran_) {
    for (PyObject* name : attribute_names(code.code.ptr())) next.names_.insert(name);
    next.all_names_ = next.all_names_ || computes_names(code);
  }
  static const std::array of_modules{PyUnicode_InternFromString("_parameters"), PyUnicode_InternFromString("_buffers"),
                                     PyUnicode_InternFromString("_modules"), PyUnicode_InternFromString("training")};
  next.names_.insert(of_modules.begin(), of_modules.end());
  ReadsWalk(next).run(roots);
  std::swap(*this, next);
}

}  // namespace tandem::python
