#include "runtime/entry.h"

#include <map>
#include <set>

#include "base/counters.h"
#include "base/log.h"
#include "runtime/wrappers.h"

namespace tandem {
namespace {

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
  const Order order = first_order(traced_, plan);
  try {
    double seconds = 0;
    std::optional<JointGraph> joint;
    {
      Stopwatch watch(seconds);
      joint = make_joint_graph(traced_, plan, order, expected_variant(order));
    }
    const double recording = joint ? joint->record_seconds : seconds;
    trace_seconds_ += recording;
    compile_seconds_ += seconds - recording;
    return joint;
  } catch (const UnsupportedError& reason) {
    throw RunEagerly(std::string("its backward cannot be compiled: ") + reason.what());
  } catch (const std::exception& reason) {
    // Eager refuses only those gradients that read what was written.
    if (order.sources.size() > 1 || order.leaves.size() > 1) throw RunEagerly(std::string("libtorch refuses a part of its gradients: ") + reason.what());
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
  if (logs("contract")) log("contract", options_.name + "\n" + plan.contract.to_string());
  first_ = std::make_unique<Derivative>(*this, first_order(traced_, plan));
  first_->split(std::move(made.joint), backward_error_);
  forward = first_->forward;
  saved_count = first_->saved_count();
  std::vector<Value> owned(first_->joint().graph.inputs());
  const auto& outputs = first_->joint().graph.outputs();
  owned.insert(owned.end(), outputs.begin(), outputs.begin() + int64_t(first_->joint().forward_outputs));
  saved_bytes_ = distinct_bytes(first_->halves().forward, first_->halves().saved, owned);
}

std::shared_ptr<Executable> Entry::compile(const Graph& graph, Part part, size_t order) const {
  static constexpr const char* counter[] = {"compile_forward", "compile_backward", "compile_inference"};
  const char* kind = order > 1 ? "compile_higher_order" : counter[size_t(part)];
  count(kind);
  if (logs("graphs")) log("graphs", options_.name + " " + (kind + 8) + "\n" + graph.to_string());
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

Explanation Entry::explain() {
  Explanation e;
  e.eager_reason = eager_reason;
  if (!eager_reason.empty()) return e;
  if (trains && !backward_error_) e.backward = first_->backward(first_->expected()).graph;
  e.joint = first_->joint().graph;
  e.forward = first_->halves().forward;
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
