#include "graphs.h"

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>
#include <tandem/compiled.h>
#include <tandem/error.h>
#include <tandem/passes.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>

#include "ops/facts.h"
#include "tree.h"

namespace tandem::python {
namespace {

using namespace pybind11::literals;

/// What a Python function says about itself for the cache.
std::string attribute(const py::object& function, const char* name) {
  py::object value = py::getattr(function, name, py::none());
  return py::isinstance<py::str>(value) ? std::string(py::str(value)) : std::string();
}

py::object operand(const Operand& operand) {
  if (auto* value = std::get_if<Value>(&operand)) return *value ? py::cast(*value) : py::none();
  if (auto* list = std::get_if<std::vector<Value>>(&operand)) return py::cast(*list);
  const c10::IValue& constant = std::get<c10::IValue>(operand);
  return constant.isNone() ? py::none() : torch::jit::toPyObject(constant);
}

py::list operands(const std::vector<Operand>& all) {
  py::list list;
  for (const Operand& one : all) list.append(operand(one));
  return list;
}

const char* const stage_names[] = {"joint", "forward", "backward", "inference"};

/// Compiled code that is a Python function.
Tensors run_python(const py::object& code, Tensors&& inputs) {
  py::gil_scoped_acquire gil;
  return py::cast<Tensors>(code(py::cast(std::move(inputs))));
}

void bind_values(py::module_& m) {
  py::class_<Value>(m, "Value", "The name of one tensor inside one graph.")
      .def_readonly("id", &Value::id)
      .def("__bool__", [](Value v) { return bool(v); })
      .def("__eq__", [](Value a, Value b) { return a == b; })
      .def("__hash__", [](Value v) { return v.id; })
      .def("__repr__", [](Value v) { return "%" + std::to_string(v.id); });
  py::class_<TensorMeta>(m, "TensorMeta", "What is known about a tensor before it exists.")
      .def_property_readonly("dtype",
                             [](const TensorMeta& t) {
                               return py::reinterpret_borrow<py::object>(
                                   reinterpret_cast<PyObject*>(torch::getTHPDtype(t.dtype)));
                             })
      .def_readonly("device", &TensorMeta::device)
      .def_property_readonly(
          "sizes", [](const TensorMeta& t) { return std::vector<int64_t>(t.sizes.begin(), t.sizes.end()); })
      .def_property_readonly(
          "strides",
          [](const TensorMeta& t) { return std::vector<int64_t>(t.strides.begin(), t.strides.end()); })
      .def_readonly("offset", &TensorMeta::offset)
      .def_readonly("storage", &TensorMeta::storage)
      .def_readonly("requires_grad", &TensorMeta::requires_grad);
  py::class_<Node>(m, "Node", "One operator call.")
      .def_property_readonly("op", [](const Node& n) { return full_name(n.op); })
      .def_property_readonly("arguments", [](const Node& n) { return operands(n.arguments); })
      .def_property_readonly("results", [](const Node& n) { return operands(n.results); })
      .def_property_readonly("phase",
                             [](const Node& n) { return n.phase == Phase::Forward ? "forward" : "backward"; })
      .def_readonly("location", &Node::location);
}

void bind_graph(py::module_& m) {
  py::class_<Graph>(m, "Graph", "A program of operator calls on named tensors.")
      .def_property_readonly("inputs", [](const Graph& g) { return g.inputs(); })
      .def_property_readonly(
          "outputs", [](const Graph& g) { return g.outputs(); }, "A none is an output that is not there.")
      .def_property_readonly("nodes", [](const Graph& g) { return g.nodes(); })
      .def(
          "meta", [](const Graph& g, Value v) { return g.meta(v); }, "value"_a)
      .def("name", &Graph::name, "value"_a)
      .def("to_string", &Graph::to_string, "Text that parses back to an equal graph.")
      .def("__str__", &Graph::to_string)
      .def_static("parse", &Graph::parse, "text"_a)
      .def("hash", &Graph::hash, "Equal across processes and machines for graphs that compute the same.")
      .def("verify", &Graph::verify, "Raises Error unless the graph is well formed.")
      .def("to_dot", &Graph::to_dot)
      .def("draw", &Graph::draw, "path"_a,
           "Writes a picture; the ending of the path (svg, png) says which kind.")
      .def(
          "run", [](const Graph& g, Tensors inputs) { return g.run(std::move(inputs)); }, "inputs"_a,
          py::call_guard<py::gil_scoped_release>(), "Runs node by node.")
      .def("__len__", [](const Graph& g) { return g.nodes().size(); });
}

void bind_compiling(py::module_& m) {
  py::class_<CompileContext>(m, "CompileContext", "What a compiler is told besides the graph.")
      .def_property_readonly("stage", [](const CompileContext& c) { return stage_names[size_t(c.stage)]; })
      .def_readonly("graph_id", &CompileContext::graph_id)
      .def_readonly("signature", &CompileContext::signature)
      .def_readonly("order", &CompileContext::order)
      .def_readonly("variant", &CompileContext::variant)
      .def_readonly("name", &CompileContext::name)
      .def_property_readonly("device", [](const CompileContext& c) { return c.device; })
      .def_readonly("static_inputs", &CompileContext::static_inputs)
      .def_readonly("donated_inputs", &CompileContext::donated_inputs)
      .def_readonly("first_tangent", &CompileContext::first_tangent)
      .def_readonly("threads", &CompileContext::threads)
      .def_readonly("example", &CompileContext::example);
  py::class_<Joint>(m, "Joint", "A joint graph and where its halves meet.")
      .def_readonly("graph", &Joint::graph)
      .def_readonly("primals", &Joint::primals)
      .def_readonly("forward_outputs", &Joint::forward_outputs);
  py::class_<Partition>(m, "Partition",
                        "A forward and a backward graph, and the values that pass between them.")
      .def(py::init<Graph, Graph, std::vector<Value>>(), "forward"_a, "backward"_a, "saved"_a)
      .def_readwrite("forward", &Partition::forward)
      .def_readwrite("backward", &Partition::backward)
      .def_readwrite("saved", &Partition::saved);
  py::class_<PartitionContext>(m, "PartitionContext", "What a partitioner is told besides the graph.")
      .def(py::init<>())
      .def_readonly("memory_budget", &PartitionContext::memory_budget)
      .def_readonly("memory_budget_bytes", &PartitionContext::memory_budget_bytes)
      .def_readonly("must_save", &PartitionContext::must_save,
                    "Values of the forward that are saved whether or not this backward reads them.")
      .def_readonly("given_back", &PartitionContext::given_back, "Primals that the function returns too.")
      .def_readonly("marked_must_save", &PartitionContext::marked_must_save,
                    "What is made in memory that the program marked: it is never computed again.")
      .def_readonly("marked_prefer_recompute", &PartitionContext::marked_prefer_recompute,
                    "The same of memory that is rather computed again than kept.");
  m.def("partition_default", &partition_default, "joint"_a, "context"_a = PartitionContext(),
        "Each node runs in the phase in which it was recorded.");
  m.def("partition_min_cut", &partition_min_cut, "joint"_a, "context"_a = PartitionContext(),
        "Keeps few bytes, and computes again what takes the least time for them.");
}

void bind_explanation(py::module_& m) {
  py::class_<SavedValue>(m, "SavedValue", "A value that a forward keeps for its backward.")
      .def_readonly("name", &SavedValue::name)
      .def_readonly("bytes", &SavedValue::bytes, "That are kept because of it.")
      .def_readonly("op", &SavedValue::op)
      .def_readonly("location", &SavedValue::location)
      .def_readonly("why", &SavedValue::why);
  py::class_<KernelInfo>(m, "KernelInfo", "A call that compiled code makes: of a kernel, or of a library's.")
      .def_readonly("name", &KernelInfo::name)
      .def_readonly("is_generated", &KernelInfo::is_generated, "Whether the kernel was made for this code.")
      .def_property_readonly("stage", [](const KernelInfo& k) { return stage_names[size_t(k.stage)]; })
      .def_readonly("nodes", &KernelInfo::nodes, "What it computes: names of values of the graph.");
  py::class_<Explanation>(m, "Explanation", "What a compile did and why.")
      .def_readonly("joint", &Explanation::joint)
      .def_readonly("forward", &Explanation::forward)
      .def_readonly("backward", &Explanation::backward)
      .def_property_readonly("contract", [](const Explanation& e) { return e.contract.to_string(); })
      .def_readonly("key", &Explanation::key)
      .def_readonly("cache_state", &Explanation::cache_state)
      .def_readonly("bypass_reason", &Explanation::bypass_reason)
      .def_readonly("key_components", &Explanation::key_components)
      .def_readonly("saved_bytes", &Explanation::saved_bytes)
      .def_readonly("predicted_peak_bytes", &Explanation::predicted_peak_bytes)
      .def_readonly("eager_saved_bytes", &Explanation::eager_saved_bytes)
      .def_readonly("saved", &Explanation::saved, "What is kept between forward and backward, and why.")
      .def_readonly(
          "kernels", &Explanation::kernels,
          "What a step calls, its forward and then its backward; empty where the code does not say.")
      .def_readonly("eager_reason", &Explanation::eager_reason,
                    "Why calls like this run as they are, uncompiled; empty when they are compiled.")
      .def_readonly("nodes_recorded", &Explanation::nodes_recorded)
      .def_readonly("trace_seconds", &Explanation::trace_seconds)
      .def_readonly("compile_seconds", &Explanation::compile_seconds);
}

}  // namespace

Compiler compiler_from(py::object function) {
  std::string name = attribute(function, "name"), version = attribute(function, "version");
  auto shared = share(std::move(function));
  return {[shared](const Graph& graph, const CompileContext& context) {
            py::gil_scoped_acquire gil;
            py::object code = (*shared)(py::cast(graph), py::cast(context));
            if (!PyCallable_Check(code.ptr()))
              throw Error("a compiler written in Python returned " + std::string(py::repr(code)) +
                          "; return a function of a list of tensors");
            return boxed([code = share(std::move(code))](Tensors&& inputs) {
              return run_python(*code, std::move(inputs));
            });
          },
          name, version};
}

Partitioner partitioner_from(py::object function) {
  std::string name = attribute(function, "name"), version = attribute(function, "version");
  const bool takes_narrow_forms = py::bool_(py::getattr(function, "takes_narrow_forms", py::bool_(false)));
  auto shared = share(std::move(function));
  Partitioner partitioner(
      [shared](const Joint& joint, const PartitionContext& context) {
        py::gil_scoped_acquire gil;
        return py::cast<Partition>((*shared)(py::cast(joint), py::cast(context)));
      },
      name, version);
  partitioner.takes_narrow_forms = takes_narrow_forms;
  return partitioner;
}

CostModel cost_model_from(py::object function) {
  std::string name = attribute(function, "name"), version = attribute(function, "version");
  auto shared = share(std::move(function));
  return {
      [shared](const Graph& graph, const Node& node) {
        py::gil_scoped_acquire gil;
        // A copy for each of its nodes would take longer than all else.
        const py::object lent = py::cast(graph, py::return_value_policy::reference);
        const auto seconds = py::cast<double>((*shared)(lent, py::cast(node)));
        if (lent.ref_count() > 1)
          throw Error(
              "a cost model written in Python keeps the graph that it was lent; copy from it what is needed");
        return seconds;
      },
      name, version};
}

void bind_graphs(py::module_& module) {
  bind_values(module);
  bind_graph(module);
  bind_compiling(module);
  bind_explanation(module);
}

}  // namespace tandem::python
