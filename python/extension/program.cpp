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

}  // namespace

PythonCall::PythonCall(const Original& original, const py::args& args, const py::kwargs& kwargs, const std::vector<py::object>& objects)
    : original_(original), args_(args), kwargs_(kwargs), objects_(objects), outer_(std::exchange(current_call, this)) {}
PythonCall::~PythonCall() { current_call = outer_; }
PythonCall* PythonCall::current() { return current_call; }

detail::Returned PythonCall::trace(const Tensors& fakes) const {
  Interned interned;
  Writer real(interned), before(interned), results(interned);
  Shape args_shape, kwargs_shape, result_shape;
  real.write(args_.ptr(), &args_shape);
  real.write(kwargs_.ptr(), &kwargs_shape);
  const at::Tensor* next = fakes.data();
  py::tuple args(build(args_shape, next));
  py::dict kwargs(build(kwargs_shape, next));
  before.write(args.ptr());
  before.write(kwargs.ptr());
  Surroundings surroundings(environment());
  UntouchedGenerator generator;
  py::object result;
  try {
    result = run_on_fakes(original_.function, args, kwargs);
  } catch (...) {
    surroundings.restore();
    generator.restore();
    throw;
  }
  std::string changed = surroundings.restore();
  if (!generator.restore()) throw RunEagerly("the function seeds the random number generator");
  if (!changed.empty()) throw RunEagerly("the function changes " + changed);
  refuse_changed_arguments(args, kwargs, before, interned);
  results.write(result.ptr(), &result_shape);
  if (std::string part = unseen_part(result_shape); !part.empty()) throw RunEagerly("the function returns a " + part + ", whose tensors cannot be seen");
  return {std::move(results.tensors), share(std::move(result_shape))};
}

py::object PythonCall::finish(const detail::Returned& returned) {
  if (result_) return std::move(result_);
  const at::Tensor* next = returned.tensors.data();
  return build(*static_cast<const Shape*>(returned.structure.get()), next);
}

detail::Returned run_current_call(const Tensors& tensors) {
  py::gil_scoped_acquire gil;
  PyErr_Clear();                             // a backward that could not be recorded leaves its error behind
  if (Tracer::current()) return PythonCall::current()->trace(tensors);
  PythonCall::current()->run_original();
  return {};
}

std::string name_capture(const at::Tensor& tensor) {
  py::gil_scoped_acquire gil;
  return PythonCall::current()->environment().name_of(tensor);
}

}  // namespace tandem::python
