#include "program.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/SavedTensorHooks.h>
#include <torch/csrc/utils/pybind.h>

#include <cstring>

#include "trace/failure.h"
#include "trace/refuse.h"
#include "trace/tracer.h"

namespace tandem::python {
namespace {

thread_local PythonCall* current_call = nullptr;

/// What is needed to call a Python function on other tensors.
struct Recipe {
  py::object original;
  Shape args, kwargs;
};

/// The caller's hooks on saved tensors wait for the tensors that compiled code saves; those that the program itself sets up work while it is traced.
class WithoutSavedTensorHooks {
 public:
  WithoutSavedTensorHooks() : outer_(at::SavedTensorDefaultHooks::get_tls_state()) { at::SavedTensorDefaultHooks::set_tls_state({}); }
  ~WithoutSavedTensorHooks() { at::SavedTensorDefaultHooks::set_tls_state(outer_); }

 private:
  at::impl::SavedTensorDefaultHooksTLS outer_;
};

/// Python turns our errors into its own, and programs may catch those; what cannot be traced stays refused.
/// Dynamo compiles what Python calls, and would be given fakes.
class WithoutDynamo {
 public:
  WithoutDynamo() : outer_(set(py::none())) {}
  ~WithoutDynamo() { set(outer_); }

 private:
  static py::object set(const py::object& callback) {
    static PyObject* const set_callback = imported("torch._C._dynamo.eval_frame", "set_eval_frame");
    return py::reinterpret_borrow<py::object>(set_callback)(callback);
  }
  py::object outer_;
};

/// Whether the innermost line of a traceback lies in a file with `folder` in its path.
bool was_raised_in(const py::error_already_set& error, const char* folder) {
  py::object trace = error.trace();
  if (!trace) return false;
  while (!trace.attr("tb_next").is_none()) trace = trace.attr("tb_next");
  return std::string(py::str(trace.attr("tb_frame").attr("f_code").attr("co_filename"))).find(folder) != std::string::npos;
}

/// Tells whether the program has set the generator to another state, and sets it back.
class UntouchedGenerator {
 public:
  UntouchedGenerator() : before_(generator_.get_state()) {}
  bool restore() {
    at::Tensor now = generator_.get_state();
    if (std::memcmp(now.const_data_ptr(), before_.const_data_ptr(), now.nbytes()) == 0) return true;   // operators would be recorded
    generator_.set_state(before_);
    return false;
  }

 private:
  at::Generator generator_ = at::detail::getDefaultCPUGenerator();
  at::Tensor before_;
};

py::object run_on_fakes(const py::object& original, const py::tuple& args, const py::dict& kwargs) {
  last_failure() = nullptr;
  WithoutSavedTensorHooks hidden;
  WithoutDynamo undisturbed;
  py::object result;
  try {
    result = original(*args, **kwargs);
  } catch (py::error_already_set& error) {
    try {
      rethrow_refusal();
    } catch (const RunEagerly&) {
      throw;
    } catch (const UnsupportedError& refusal) {
      if (was_raised_in(error, "/torch/nn/")) throw RunEagerly(std::string("a module of torch's reads data: ") + refusal.what());
      throw;
    }
    if (error.matches(PyExc_RuntimeError) && asks_for_data(error.what())) refuse_data_access();
    if (error.matches(PyExc_RuntimeError) && std::string_view(error.what()).find("DispatchKey Fake") != std::string_view::npos)
      throw RunEagerly("the function calls something that makes tensors by the kind of another one (new_tensor, new)");
    throw;
  }
  rethrow_refusal();
  return result;
}

/// Compiled code repeats what was done to tensors, not what was done to lists, dicts and attributes.
void refuse_changed_arguments(const py::tuple& args, const py::dict& kwargs, const Writer& before, Interned& interned) {
  Writer after(interned);
  after.write(args.ptr());
  after.write(kwargs.ptr());
  auto same = [](const at::Tensor& a, const at::Tensor& b) { return a.is_same(b); };
  if (after.key != before.key || !std::equal(after.tensors.begin(), after.tensors.end(), before.tensors.begin(), before.tensors.end(), same))
    throw RunEagerly("the function changes a list, dict or object that it was given");
}

detail::Returned trace(const Recipe& recipe, const Environment& environment, const Tensors& tensors) {
  const at::Tensor* next = tensors.data();
  py::tuple args(build(recipe.args, next));
  py::dict kwargs(build(recipe.kwargs, next));
  Interned interned;
  Writer before(interned);
  before.write(args.ptr());
  before.write(kwargs.ptr());
  Surroundings surroundings(environment);
  UntouchedGenerator generator;
  py::object result;
  try {
    result = run_on_fakes(recipe.original, args, kwargs);
  } catch (...) {
    surroundings.restore();
    generator.restore();
    throw;
  }
  if (!generator.restore()) throw RunEagerly("the function seeds the random number generator");
  if (std::string changed = surroundings.restore(); !changed.empty()) throw RunEagerly("the function changes " + changed);
  refuse_changed_arguments(args, kwargs, before, interned);
  Writer writer(interned);
  Shape shape;
  writer.write(result.ptr(), &shape);
  if (std::string part = unseen_part(shape); !part.empty()) throw RunEagerly("the function returns a " + part + ", whose tensors cannot be seen");
  return {std::move(writer.tensors), share(std::move(shape))};
}

}  // namespace

PythonCall::PythonCall(const py::args& args, const py::kwargs& kwargs) : args_(args), kwargs_(kwargs), outer_(std::exchange(current_call, this)) {}
PythonCall::~PythonCall() { current_call = outer_; }
PythonCall* PythonCall::current() { return current_call; }

void PythonCall::run_original(const py::object& original) { result_ = original(*args_, **kwargs_); }

py::object PythonCall::finish(const detail::Returned& returned) {
  if (result_) return std::move(result_);
  const at::Tensor* next = returned.tensors.data();
  return build(*static_cast<const Shape*>(returned.structure.get()), next);
}

detail::Program make_program(const py::object& original, std::shared_ptr<const Environment> environment, const py::args& args, const py::kwargs& kwargs) {
  Recipe recipe{original, {}, {}};
  Interned interned;
  Writer writer(interned);
  writer.write(args.ptr(), &recipe.args);
  writer.write(kwargs.ptr(), &recipe.kwargs);
  return [recipe = share(std::move(recipe)), environment = std::move(environment)](const Tensors& tensors) -> detail::Returned {
    py::gil_scoped_acquire gil;
    PyErr_Clear();                           // a backward that could not be recorded leaves its error behind
    if (Tracer::current()) return trace(*recipe, *environment, tensors);
    PythonCall::current()->run_original(recipe->original);
    return {};
  };
}

}  // namespace tandem::python
