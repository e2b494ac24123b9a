#include "checkpoints.h"

#include <ATen/SavedTensorHooks.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/python_cpp_function.h>
#include <torch/csrc/utils/pybind.h>

#include "base/host.h"
#include "ownership.h"
#include "program.h"

namespace tandem::python {
namespace {

/// The code of a function that is defined inside of another one.
py::object code_within(const py::handle& outer, const char* name) {
  for (py::handle constant : outer.attr("__code__").attr("co_consts"))
    if (PyCode_Check(constant.ptr()) && py::cast<std::string>(constant.attr("co_name")) == name)
      return py::reinterpret_borrow<py::object>(constant);
  throw py::attribute_error(name);
}

/// What a function knows of the one that it is defined in.
py::object variable(const py::handle& function, const char* name) {
  const py::tuple names = function.attr("__code__").attr("co_freevars"), cells = function.attr("__closure__");
  for (size_t i = 0; i < names.size(); ++i)
    if (py::cast<std::string>(names[i]) == name) return cells[i].attr("cell_contents");
  throw py::attribute_error(name);
}

/// Code and classes of torch.utils.checkpoint, as this torch has them.
struct Torchs {
  py::module_ module = py::module_::import("torch.utils.checkpoint");
  py::object frame = module.attr("_CheckpointFrame"), metadata = module.attr("_default_meta_extractor"),
             nothing = py::module_::import("contextlib").attr("nullcontext"),
             generated = py::module_::import("contextlib").attr("_GeneratorContextManager");
  py::object hooks = module.attr("_checkpoint_hook").attr("__init__"),
             generator = module.attr("_checkpoint_without_reentrant_generator");
  py::object pack = code_within(hooks, "pack_hook"), unpack = code_within(hooks, "unpack_hook"),
             again = code_within(generator, "recompute_fn");

  bool has(const py::object& code) const { return code.attr("co_filename").equal(module.attr("__file__")); }
  /// Nobody has put something else in their place.
  bool are_own() const { return has(pack) && has(unpack) && has(again); }
};

bool runs(const py::handle& function, const py::object& code) {
  return PyFunction_Check(function.ptr()) && PyFunction_GET_CODE(function.ptr()) == code.ptr();
}

/// A checkpoint that is debugged, checks otherwise or enters a context of the user's in the backward is
/// another one; and one whose context can be entered once has no two backwards to be recorded.
bool are_of_checkpoint(const py::handle& pack, const py::handle& unpack) {
  static const auto* const torchs = new Torchs;
  if (!torchs->are_own() || !runs(pack, torchs->pack)) return false;
  const py::object frame = variable(pack, "frame"), again = frame.attr("recompute_fn");
  if (!runs(again, torchs->again)) return false;
  const py::object context = variable(again, "recompute_context");
  if (py::isinstance(context, torchs->generated))
    refuse_for_good("the backward of a checkpoint enters a context that can be entered but once");
  return runs(unpack, torchs->unpack) && variable(unpack, "frame").is(frame) &&
         py::type::of(frame).is(torchs->frame) && frame.attr("unpack_error_cb").is_none() &&
         torchs->metadata.is(frame.attr("metadata_fn")) && py::type::of(context).is(torchs->nothing);
}

/// Another torch may have other checkpoints, which nobody knows then.
bool sets_checkpoint() {
  py::gil_scoped_acquire gil;
  const auto hooks = at::SavedTensorDefaultHooks::get_hooks(/*ignore_is_tracing=*/true);
  if (!hooks) return false;
  try {
    return are_of_checkpoint(hooks->first.ptr(getPyInterpreter()), hooks->second.ptr(getPyInterpreter()));
  } catch (const py::builtin_exception&) {
  } catch (const py::error_already_set&) {
  }
  return false;
}

/// Dropped on whatever thread drops the history.
std::shared_ptr<py::object> held(py::object object) {
  return {new py::object(std::move(object)), [](py::object* kept) {
            py::gil_scoped_acquire gil;
            delete kept;
          }};
}

std::optional<HostCheckpoint> reentrant_checkpoint(torch::autograd::Node& node) {
  if (node.name() != "CheckpointFunctionBackward") return std::nullopt;
  py::gil_scoped_acquire gil;
  static PyObject* const module = py::module_::import("tandem._reentrant").release().ptr();
  const auto context =
      held(py::reinterpret_steal<py::object>(torch::autograd::functionToPyObject(node.getptr())));
  if (!py::cast<bool>(py::handle(module).attr("is_checkpoint")(*context))) return std::nullopt;
  if (py::cast<bool>(py::handle(module).attr("has_device")(*context)))
    throw RunEagerly("a reentrant checkpoint draws random numbers of a device again");
  return HostCheckpoint{[context] {
                          py::gil_scoped_acquire gil;
                          return py::cast<Tensors>(context->attr("saved_tensors"));
                        },
                        [context](const Tensors& saved, const Tensors& gradients) {
                          py::gil_scoped_acquire gil;
                          auto [outputs, brought, inputs] = py::cast<std::tuple<Tensors, Tensors, Tensors>>(
                              py::handle(module).attr("call_again")(*context, saved, gradients));
                          return HostCheckpoint::Again{std::move(outputs), std::move(brought),
                                                       std::move(inputs)};
                        }};
}

}  // namespace

void know_checkpoints() {
  sets_checkpoint_in_host() = sets_checkpoint;
  checkpoint_in_host() = reentrant_checkpoint;
}

}  // namespace tandem::python
