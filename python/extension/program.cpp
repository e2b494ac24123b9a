#include "program.h"

#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include "compiling.h"
#include "guards.h"
#include "ownership.h"
#include "trace/failure.h"
#include "trace/refuse.h"
#include "trace/tracer.h"
#include "trace/watcher.h"

namespace tandem::python {
namespace {

thread_local PythonCall* current_call = nullptr;

/// A program that may not fail when nobody tells it that it is compiled.
struct FailsWhenTold : TraceAgain {
  using TraceAgain::TraceAgain;
};

/// Whether the engine compares this call of the original with what it recorded.
bool is_watched() { return Watcher::current() != nullptr; }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Python turns our errors into its own, and programs may catch those; what cannot be traced stays refused.
py::object run_on_fakes(const Original& original, const py::tuple& args, const py::dict& kwargs,
                        std::vector<RanCode>& ran, bool is_told) {
  last_failure() = nullptr;
  WithoutSavedTensorHooks hidden;
  WithoutDynamo undisturbed;
  std::optional<Compiling> compiling;
  if (is_told) compiling.emplace();
  py::object result;
  try {
    RunningCode running(ran);
    result = original.function(*args, **kwargs);
  } catch (py::error_already_set& error) {
    rethrow_refusal();
    if (error.matches(PyExc_RuntimeError) && asks_for_data(error.what())) refuse_data_access();
    if (error.matches(PyExc_RuntimeError) &&
        std::string_view(error.what()).find("DispatchKey Fake") != std::string_view::npos)
      throw RunEagerly(
          "the function calls something that makes tensors by the kind of another one (new_tensor, new)");
    if (is_told && asked_whether_compiling(ran))
      throw FailsWhenTold("it raised " + first_line(error.what()) + " where it was told that it is compiled");
    if (original.must_compile || !error.matches(PyExc_Exception)) throw;
    // The original fails too, with what it does before that.
    throw KeepsState("it raised " + first_line(error.what()) + " while it was traced");
  }
  rethrow_refusal();
  return result;
}

/// Compiled code repeats what was done to tensors, not what was done to lists, dicts and attributes.
void refuse_changed_arguments(const py::tuple& args, const py::dict& kwargs, const Writer& before,
                              Interned& interned) {
  Writer after(interned);
  after.write(args.ptr());
  after.write(kwargs.ptr());
  auto same = [](const at::Tensor& a, const at::Tensor& b) { return a.is_same(b); };
  if (after.key != before.key || !std::equal(after.tensors.begin(), after.tensors.end(),
                                             before.tensors.begin(), before.tensors.end(), same))
    throw KeepsState("the function changes a list, dict or object that it was given");
}

/// Arguments that are taken apart have methods too.
void add_classes(PyObject* value, std::vector<py::object>& to) {
  if (Py_TYPE(value)->tp_flags & Py_TPFLAGS_HEAPTYPE && !THPVariable_Check(value))
    to.push_back(py::type::of(value));
  PyObject *name, *item;
  for (Py_ssize_t at = 0; PyDict_Check(value) && PyDict_Next(value, &at, &name, &item);)
    add_classes(item, to);
  for (Py_ssize_t i = 0; PyTuple_Check(value) && i < PyTuple_GET_SIZE(value); ++i)
    add_classes(PyTuple_GET_ITEM(value, i), to);
  for (Py_ssize_t i = 0; PyList_Check(value) && i < PyList_GET_SIZE(value); ++i)
    add_classes(PyList_GET_ITEM(value, i), to);
}

}  // namespace

PythonCall::PythonCall(const Original& original, const py::args& args, const py::kwargs& kwargs,
                       const Writer& writer, std::shared_ptr<Reads> reads)
    : original_(original),
      args_(args),
      kwargs_(kwargs),
      objects_(writer.objects),
      reads_(std::move(reads)),
      outer_(std::exchange(current_call, this)) {}
PythonCall::~PythonCall() { current_call = outer_; }
PythonCall* PythonCall::current() { return current_call; }

Surroundings PythonCall::surroundings() const {
  Surroundings::Roots roots{{original_.function, "self"}};
  for (size_t i = 0; i < args_.size(); ++i) roots.emplace_back(args_[i], "argument " + std::to_string(i));
  for (auto [name, value] : kwargs_)
    roots.emplace_back(py::reinterpret_borrow<py::object>(value), py::str(name));
  for (py::handle root : original_.roots)
    roots.emplace_back(py::reinterpret_borrow<py::object>(root), "self");
  return Surroundings(std::move(roots));
}

void PythonCall::run_original() {
  WithoutDynamo undisturbed;
  std::optional<Compiling> compiling;
  if (is_watched() && reads_->is_told) compiling.emplace();
  result_ = original_.function(*args_, **kwargs_);
}

detail::Returned PythonCall::trace(const Tensors& fakes) const {
  Interned interned;
  Writer real(interned), before(interned), results(interned);
  Shape call_shape, result_shape;
  real.write(py::make_tuple(args_, kwargs_).ptr(), &call_shape);
  const at::Tensor* next = fakes.data();
  const py::tuple call(build(call_shape, next));
  const py::tuple args = call[0];
  const py::dict kwargs = call[1];
  std::vector<PyObject*> containers;
  before.containers = &containers;
  before.write(args.ptr());
  before.write(kwargs.ptr());
  if (std::string part = environment().odd_tensor(); !part.empty()) {
    note_reads({}, {});
    throw RunEagerly(part);
  }
  const Surroundings surroundings = this->surroundings();
  const HostRandomness randomness(surroundings.generators());
  Tracer::current()->remember_gradients(surroundings.leaves());
  py::object result;
  std::string variable;
  Surroundings::Restored restored;
  std::vector<RanCode> ran;
  try {
    OwnContext context;
    GuardedOutput output;
    surroundings.guard_iterators();
    result = run_on_fakes(original_, args, kwargs, ran, reads_->is_told);
    variable = context.changed();
  } catch (const FailsWhenTold&) {
    py::error_scope error;  // that is on its way
    surroundings.restore();
    randomness.restore();
    reads_->is_told = false;
    throw;
  } catch (...) {
    py::error_scope error;  // that is on its way
    restored = surroundings.restore();
    randomness.restore();
    note_reads(ran, restored.changes);
    throw;
  }
  if (reads_->is_told) Tracer::current()->run_backwards_within(compiling_anywhere);
  restored = surroundings.restore();
  const std::string drawn = randomness.restore();
  note_reads(ran, restored.changes);
  if (!drawn.empty()) throw RunEagerly("the function draws numbers from " + drawn);
  if (!restored.what.empty()) throw KeepsState("the function changes " + restored.what);
  if (!variable.empty()) throw KeepsState("the function sets the context variable " + variable);
  refuse_changed_arguments(args, kwargs, before, interned);
  std::unordered_map<PyObject*, size_t> given;
  for (size_t i = 0; i < containers.size(); ++i) given.try_emplace(containers[i], i);
  results.given = &given;
  std::vector<PyObject*> returned;
  results.containers = &returned;
  results.write(result.ptr(), &result_shape);
  for (PyObject* container : returned)
    if (surroundings.has(container))
      throw RunEagerly(std::string("the function returns a ") + Py_TYPE(container)->tp_name +
                       " that it did not make");
  const References references(result.ptr());
  for (const auto& [object, position] : results.taken_apart)
    if (!references.are_all_of(object))
      throw RunEagerly(std::string("the function returns a ") + Py_TYPE(object)->tp_name +
                       " that it did not make, or that it keeps");
  if (std::string part = unseen_part(result_shape); !part.empty())
    throw RunEagerly("the function returns a " + part + ", whose tensors cannot be seen");
  return {std::move(results.tensors), share(std::move(result_shape))};
}

void PythonCall::note_reads(const std::vector<RanCode>& ran, const std::vector<Change>& changes) const {
  std::vector<py::object> roots{original_.function};
  for (py::handle root : original_.roots) roots.push_back(py::reinterpret_borrow<py::object>(root));
  roots.insert(roots.end(), objects_.begin(), objects_.end());
  add_classes(args_.ptr(), roots);
  add_classes(kwargs_.ptr(), roots);
  reads_->note(ran, roots, changes);
}

py::object PythonCall::finish(const detail::Returned& returned) {
  if (result_) return std::move(result_);
  const at::Tensor* next = returned.tensors.data();
  const Shape& shape = *static_cast<const Shape*>(returned.structure.get());
  if (!holds_given(shape)) return build(shape, next);
  Interned interned;
  Writer writer(interned);
  std::vector<PyObject*> containers;
  writer.containers = &containers;
  writer.write(args_.ptr());
  writer.write(kwargs_.ptr());
  return build(shape, next, containers);
}

detail::Returned run_current_call(const Tensors& tensors) {
  py::gil_scoped_acquire gil;
  PyErr_Clear();  // a backward that could not be recorded leaves its error behind
  if (Tracer::current()) return PythonCall::current()->trace(tensors);
  PythonCall::current()->run_original();
  return {};
}

void refuse_for_good(const std::string& reason) {
  last_failure() = std::make_exception_ptr(RunEagerly(reason));
  throw RunEagerly(reason);
}

std::string name_capture(const at::Tensor& tensor) {
  py::gil_scoped_acquire gil;
  return PythonCall::current()->environment().name_of(tensor);
}

}  // namespace tandem::python
