#include "runtime/entry.h"

#include <tandem/passes.h>

#include <chrono>
#include <map>
#include <set>

#include "base/counters.h"
#include "base/log.h"
#include "partition/extract.h"
#include "passes/standard.h"
#include "runtime/wrappers.h"

namespace tandem {
namespace {

class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

Graph apply_registered(Graph graph, Stage stage) {
  for (const Pass& pass : registered_passes(stage)) graph = pass(std::move(graph));
  return graph;
}

DecompositionTable wanted_decompositions(const Options& options) {
  if (options.decompositions) return *options.decompositions;
  return options.fw_compiler ? DecompositionTable() : find_backend(options.backend)->decompositions();
}

/// Storages of `values` that belong to none of `owned`, each counted once.
int64_t distinct_bytes(const Graph& graph, const std::vector<Value>& values, const std::vector<Value>& owned) {
  std::set<int32_t> left_out;
  for (Value v : owned)
    if (v) left_out.insert(graph.meta(v).storage);
  std::map<int32_t, int64_t> sizes;
  for (const Node& node : graph.nodes())
    for_each_result(node, [&](Value made) {
      int64_t& size = sizes[graph.meta(made).storage];
      size = std::max(size, graph.meta(made).storage_bytes());
    });
  int64_t bytes = 0;
  for (Value v : values)
    if (left_out.insert(graph.meta(v).storage).second) bytes += sizes[graph.meta(v).storage];
  return bytes;
}

}  // namespace

Entry::Entry(const CompileRequest& request, const Tensors& arguments) : options_(request.options), graph_id_(request.graph_id) {
  for (const at::Tensor& argument : arguments)
    if (auto kind = uncompiled_kind(argument)) eager_reason = "an argument is " + *kind;
  if (eager_reason.empty()) {
    try {
      trace_and_plan(request, arguments);
    } catch (const RunEagerly& reason) {
      eager_reason = reason.what();
    }
  }
  if (!eager_reason.empty()) {
    log("compile", options_.name + ": runs as it is: " + eager_reason);
    captures_.clear();
    names = request.argument_names;
    signature = Signature(arguments, {}, request.watched, true);
  }
}

void Entry::trace_and_plan(const CompileRequest& request, const Tensors& arguments) {
  {
    Stopwatch watch(trace_seconds_);
    traced_ = trace_forward(request.program, arguments, options_.record_locations);
  }
  // Another call may pass another tensor there, while the captured one stays.
  for (const TracedInput& input : traced_.tracer->inputs())
    if (input.also_captured) throw RunEagerly("an argument is also captured by the function");
  read_inputs(arguments);
  name_inputs(request);
  plan = plan_calls(traced_, names, options_.keep_input_mutations);
  structure = traced_.structure;
  for (const InputRole& input : plan.contract.inputs) changes_metadata = changes_metadata || input.metadata_written;
  trains = !plan.tangent_sources.empty() && !plan.gradient_inputs.empty();
  std::optional<JointGraph> joint;
  if (trains) {
    joint = differentiate();
    if (!joint && !backward_error_) {
      read_inputs(arguments);
      name_inputs(request);
      plan = plan_calls(traced_, names, options_.keep_input_mutations);
      joint = differentiate();
    }
  }
  if (!joint) joint = make_inference_graph(traced_, plan);
  nodes_recorded_ = joint->nodes_recorded;
  eager_saved_bytes_ = joint->eager_saved_bytes;
  signature = Signature(arguments, *captures(), request.watched, joint->reads_offsets);
  Stopwatch watch(compile_seconds_);
  split_and_compile(std::move(*joint));
  wrappers = make_wrappers(*this);
  traced_.tracer->release_real_tensors();
}

/// A backward that eager would refuse is refused when it is called, as eager does; the forward runs.
std::optional<JointGraph> Entry::differentiate() {
  expected_ = expected_variant(traced_, plan);
  try {
    double seconds = 0;
    std::optional<JointGraph> joint;
    {
      Stopwatch watch(seconds);
      joint = make_joint_graph(traced_, plan, expected_);
    }
    const double recording = joint ? joint->record_seconds : seconds;
    trace_seconds_ += recording;
    compile_seconds_ += seconds - recording;
    return joint;
  } catch (const UnsupportedError& reason) {
    throw RunEagerly(std::string("its backward cannot be compiled: ") + reason.what());
  } catch (const std::exception&) {
    backward_error_ = std::current_exception();
    return std::nullopt;
  }
}

void Entry::read_inputs(const Tensors& arguments) {
  captures_.clear();
  input_of_argument.assign(arguments.size(), size_t(-1));
  const auto& inputs = traced_.tracer->inputs();
  for (size_t a = 0; a < arguments.size(); ++a)
    for (size_t i = 0; i < inputs.size() && arguments[a].defined(); ++i)
      if (inputs[i].real.is_same(arguments[a])) input_of_argument[a] = i;
  for (const TracedInput& input : inputs)
    if (input.captured) captures_.emplace_back(input.real.getIntrusivePtr());
}

std::optional<Tensors> Entry::captures() const {
  Tensors alive;
  alive.reserve(captures_.size());
  for (const auto& weak : captures_) {
    auto impl = weak.lock();
    if (!impl) return std::nullopt;
    alive.emplace_back(std::move(impl));
  }
  return alive;
}

void Entry::name_inputs(const CompileRequest& request) {
  std::map<const c10::TensorImpl*, std::string> known;
  for (const auto& root : options_.watch) {
    if (!root) continue;
    for (const auto& item : root->named_parameters()) known.emplace(item.value().unsafeGetTensorImpl(), "parameter " + item.key());
    for (const auto& item : root->named_buffers()) known.emplace(item.value().unsafeGetTensorImpl(), "buffer " + item.key());
  }
  names.clear();
  size_t arguments = 0, captured = 0;
  for (const TracedInput& input : traced_.tracer->inputs()) {
    if (!input.captured) {
      size_t a = size_t(std::find(input_of_argument.begin(), input_of_argument.end(), arguments) - input_of_argument.begin());
      names.push_back(a < request.argument_names.size() ? request.argument_names[a] : "argument " + std::to_string(a));
      ++arguments;
    } else {
      auto found = known.find(input.real.unsafeGetTensorImpl());
      std::string name = found != known.end() ? found->second : request.name_capture ? request.name_capture(input.real) : "";
      names.push_back(name.empty() ? "captured tensor " + std::to_string(captured) : name);
      ++captured;
    }
  }
}

void Entry::split_and_compile(JointGraph made) {
  Graph graph = run_standard_passes(std::move(made.joint.graph), wanted_decompositions(options_), Stage::Joint);
  joint_ = {std::move(graph), made.joint.primals, made.joint.forward_outputs};
  if (logs("joint")) log("joint", options_.name + "\n" + joint_.graph.to_string());
  if (logs("contract")) log("contract", options_.name + "\n" + plan.contract.to_string());
  bool has_backward = trains && !backward_error_;
  if (has_backward) {
    count("partition");
    Partitioner partitioner = options_.partition_fn ? options_.partition_fn : find_partitioner(options_.partitioner);
    halves_ = partitioner(joint_);
    halves_.forward = apply_registered(std::move(halves_.forward), Stage::Forward);
    saved_count = halves_.saved.size();
    saved_bytes_ = distinct_bytes(halves_.forward, halves_.saved, [&] {
      std::vector<Value> owned(joint_.graph.inputs());
      owned.insert(owned.end(), joint_.graph.outputs().begin(), joint_.graph.outputs().begin() + int64_t(joint_.forward_outputs));
      return owned;
    }());
    find_shared_versions();
  } else {
    halves_.forward = apply_registered(joint_.graph, Stage::Inference);
  }
  forward = compile(halves_.forward, has_backward ? Part::Forward : Part::Inference);
}

void Entry::find_shared_versions() {
  const Graph& graph = halves_.forward;
  std::map<int32_t, size_t> inputs, outputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) inputs.emplace(graph.meta(graph.inputs()[i]).storage, i);
  for (size_t i = 0; i < joint_.forward_outputs; ++i)
    if (graph.outputs()[i]) outputs.emplace(graph.meta(graph.outputs()[i]).storage, i);
  for (size_t s = 0; s < halves_.saved.size(); ++s) {
    int32_t storage = graph.meta(halves_.saved[s]).storage;
    if (auto input = inputs.find(storage); input != inputs.end()) {
      shared_versions.push_back({s, input->second, true});
    } else if (auto output = outputs.find(storage); output != outputs.end()) {
      shared_versions.push_back({s, output->second, false});
    }
  }
}

std::shared_ptr<Executable> Entry::compile(const Graph& graph, Part part) const {
  static constexpr const char* counter[] = {"compile_forward", "compile_backward", "compile_inference"};
  count(counter[size_t(part)]);
  if (logs("graphs")) log("graphs", options_.name + " " + (counter[size_t(part)] + 8) + "\n" + graph.to_string());
  CompileContext context;
  context.part = part;
  context.graph_id = graph_id_;
  context.name = options_.name.empty() ? "function " + std::to_string(graph_id_) : options_.name;
  context.contract = &plan.contract;
  context.options = &options_;
  for (Value input : graph.inputs()) context.example.push_back(graph.meta(input));
  if (part != Part::Backward)
    for (size_t i = 0; i < plan.contract.inputs.size(); ++i)
      if (plan.contract.inputs[i].captured) context.static_inputs.push_back(i);
  const Compiler* own = part == Part::Backward ? &options_.bw_compiler : part == Part::Inference ? &options_.inference_compiler : &options_.fw_compiler;
  if (!*own) own = &options_.fw_compiler;
  auto code = *own ? (*own)(graph, context) : find_backend(options_.backend)->compile(graph, context);
  if (!code) throw Error("the compiler of " + context.name + " returned no executable");
  return code;
}

const BackwardCode& Entry::backward(const BackwardVariant& variant) {
  std::lock_guard lock(backward_mutex_);
  if (backward_error_) std::rethrow_exception(backward_error_);
  for (const auto& known : backwards_)
    if (known->variant == variant) return *known;
  Stopwatch watch(compile_seconds_);
  backwards_.push_back(std::make_unique<BackwardCode>(compile_backward(variant)));
  return *backwards_.back();
}

BackwardCode Entry::compile_backward(const BackwardVariant& variant) {
  BackwardCode code{.variant = variant};
  if (variant == expected_) {
    code.graph = halves_.backward;
    for (size_t i = 0; i < saved_count; ++i) code.saved.push_back(i);
  } else {
    count("backward_variant");
    if (auto alive = captures()) traced_.tracer->hold_captures(*alive);
    auto other = make_joint_graph(traced_, plan, variant);
    traced_.tracer->release_real_tensors();
    if (!other) throw UnsupportedError("a backward with other gradients than the first reads tensors that it captured; read them in the forward too");
    Joint joint{run_standard_passes(std::move(other->joint.graph), wanted_decompositions(options_), Stage::Joint), joint_.primals, joint_.forward_outputs};
    Extracted extracted = extract_backward(joint, joint_, halves_.saved);
    code.graph = eliminate_dead_code(std::move(extracted.backward));
    code.saved = std::move(extracted.saved);
  }
  code.graph = apply_registered(std::move(code.graph), Stage::Backward);
  size_t next = 0;
  for (bool wanted : variant.wanted) {
    bool there = wanted && code.graph.outputs()[next];
    code.gradients.push_back(there ? int64_t(next) : -1);
    next += wanted;
  }
  code.code = compile(code.graph, Part::Backward);
  return code;
}

Explanation Entry::explain() {
  Explanation e;
  e.eager_reason = eager_reason;
  if (!eager_reason.empty()) return e;
  if (trains && !backward_error_) e.backward = backward(expected_).graph;
  e.joint = joint_.graph;
  e.forward = halves_.forward;
  e.contract = plan.contract;
  e.key = traced_.tracer->graph().hash();
  e.saved_bytes = saved_bytes_;
  e.eager_saved_bytes = eager_saved_bytes_;
  e.nodes_recorded = nodes_recorded_;
  e.trace_seconds = trace_seconds_;
  e.compile_seconds = compile_seconds_;
  e.key_components = {"trace: " + e.key};
  return e;
}

void Entry::check_against(const detail::Program& program, const Tensors& arguments) {
  Traced again = trace_forward(program, arguments, false);
  size_t next = 0;
  for (const TracedInput& input : again.tracer->inputs())
    if (input.captured && next < captures_.size() && captures_[next++].lock().get() != input.real.unsafeGetTensorImpl())
      throw Error(names[names.size() - captures_.size() + next - 1] + " is another tensor than when the function was traced, though nothing in its signature "
                  "changed; pass it as an argument, or write into the tensor that the function captured");
  const Graph &now = again.tracer->graph(), &then = traced_.tracer->graph();
  if (now.hash() == then.hash()) return;
  size_t n = 0;
  while (n < now.nodes().size() && n < then.nodes().size() && to_string(now, now.nodes()[n]) == to_string(then, then.nodes()[n])) ++n;
  throw Error("the function computes something else than when it was traced, though nothing in its signature changed; a captured number or flag that "
              "changes must become an argument. First difference:\n" +
              (n < now.nodes().size() ? excerpt(now, n) : std::string("  the function ends earlier now")));
}

}  // namespace tandem
