// The extension module tandem._C.
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>
#include <torch/csrc/utils/pybind.h>

#include "callable.h"
#include "checkpoints.h"
#include "errors.h"
#include <tandem/memory.h>
#include <tandem/passes.h>

#include "graphs.h"
#include "numbers.h"
#include "program.h"
#include "trace/failure.h"
#include "trace/tracer.h"

namespace tandem::python {
namespace {

using namespace pybind11::literals;

void bind_options(py::module_& m) {
  py::class_<CacheOptions>(m, "CacheOptions", "Where compiled code is remembered.")
      .def(py::init([](bool enabled, bool strict, bool local, std::optional<std::filesystem::path> directory,
                       std::string remote, std::string remote_namespace, std::string signing_key,
                       uint64_t max_bytes) {
             return CacheOptions{enabled,
                                 strict,
                                 local,
                                 directory.value_or(""),
                                 std::move(remote),
                                 std::move(remote_namespace),
                                 std::move(signing_key),
                                 max_bytes};
           }),
           py::kw_only(), "enabled"_a = true, "strict"_a = false, "local"_a = true,
           "directory"_a = py::none(), "remote"_a = "", "remote_namespace"_a = "tandem", "signing_key"_a = "",
           "max_bytes"_a = CacheOptions().max_bytes)
      .def_readwrite("enabled", &CacheOptions::enabled)
      .def_readwrite("strict", &CacheOptions::strict)
      .def_readwrite("local", &CacheOptions::local)
      // Python's empty path is the working folder, so a folder that is not given is None.
      .def_property(
          "directory",
          [](const CacheOptions& o) {
            return o.directory.empty() ? std::nullopt : std::optional(o.directory);
          },
          [](CacheOptions& o, const std::optional<std::filesystem::path>& directory) {
            o.directory = directory.value_or("");
          })
      .def_readwrite("remote", &CacheOptions::remote)
      .def_readwrite("remote_namespace", &CacheOptions::remote_namespace)
      .def_readwrite("signing_key", &CacheOptions::signing_key)
      .def_readwrite("max_bytes", &CacheOptions::max_bytes);
  py::class_<Options>(m, "Options", "Everything a user can ask of a compile.")
      .def(py::init<>())
      .def_readwrite("backend", &Options::backend)
      .def_readwrite("cudagraphs", &Options::cudagraphs)
      .def_readwrite("partitioner", &Options::partitioner)
      .def_readwrite("memory_budget", &Options::memory_budget)
      .def_readwrite("memory_budget_bytes", &Options::memory_budget_bytes)
      .def_readwrite("random", &Options::random)
      .def_readwrite("keep_input_mutations", &Options::keep_input_mutations)
      .def_readwrite("watched_calls", &Options::watched_calls)
      .def_readwrite("must_compile", &Options::must_compile)
      .def_readwrite("debug_asserts", &Options::debug_asserts)
      .def_readwrite("record_locations", &Options::record_locations)
      .def_readwrite("name", &Options::name)
      .def_readwrite("max_signatures", &Options::max_signatures)
      .def_readwrite("static_arguments", &Options::static_arguments)
      .def_readwrite("cache", &Options::cache)
      .def("set_fw_compiler", [](Options& o, py::object f) { o.fw_compiler = compiler_from(std::move(f)); })
      .def("set_bw_compiler", [](Options& o, py::object f) { o.bw_compiler = compiler_from(std::move(f)); })
      .def("set_inference_compiler",
           [](Options& o, py::object f) { o.inference_compiler = compiler_from(std::move(f)); })
      .def("set_partition_fn",
           [](Options& o, py::object f) { o.partition_fn = partitioner_from(std::move(f)); })
      .def("set_cost_model", [](Options& o, py::object f) { o.cost_model = cost_model_from(std::move(f)); })
      .def("decompose_nothing", [](Options& o) { o.decompositions.emplace(); })
      .def("decompose_by_default", [](Options& o) { o.decompositions = default_decompositions(); });
}

void show_to_garbage_collector(PyHeapTypeObject* heap_type) {
  auto* type = &heap_type->ht_type;
  type->tp_flags |= Py_TPFLAGS_HAVE_GC;
  type->tp_traverse = [](PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!py::detail::is_holder_constructed(self)) return 0;
    return py::cast<PythonCallable&>(py::handle(self)).visit(visit, arg);
  };
  type->tp_clear = [](PyObject* self) {
    if (py::detail::is_holder_constructed(self)) py::cast<PythonCallable&>(py::handle(self)).clear();
    return 0;
  };
}

}  // namespace
}  // namespace tandem::python

PYBIND11_MODULE(_C, m) {
  using namespace tandem;
  using namespace tandem::python;
  m.attr("__version__") = TANDEM_VERSION;
  bind_errors(m);
  bind_graphs(m);
  bind_options(m);
  py::class_<PythonCallable>(m, "Callable", "A Python function or module with what was compiled of it.",
                             py::custom_type_setup(show_to_garbage_collector))
      .def(py::init<py::object, py::list, Options>(), py::arg("original"), py::arg("roots"),
           py::arg("options"))
      .def("__call__", &PythonCallable::call)
      .def("explain", &PythonCallable::explain)
      .def("knows", &PythonCallable::knows)
      .def_property_readonly("original", &PythonCallable::original);
  m.def("counters", &counters, "How often each thing happened in this process.");
  m.def("reset", &reset, py::call_guard<py::gil_scoped_release>());
  m.def("backends", &backends);
  m.def(
      "refuse", [](const std::string& reason) { refuse_for_good(reason); },
      "Ends the trace that this thread is in: the function runs as it is.");
  m.def(
      "refuse_once", [](const std::string& reason) { refuse<KeepsState>(reason); },
      "The same, and it may be traced again at its next call.");
  bind_numbers(m);
  know_checkpoints();
  m.def("mark_must_save", [](const at::Tensor& x) { must_save(x); }, py::arg("x"));
  m.def("mark_prefer_recompute", [](const at::Tensor& x) { prefer_recompute(x); }, py::arg("x"));
  m.def("is_tracing", [] { return Tracer::current() != nullptr; });
}
