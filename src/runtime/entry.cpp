#include "runtime/entry.h"

#include <unordered_map>
#include <unordered_set>

#include "aot/replay.h"
#include "base/counters.h"
#include "base/log.h"
#include "compile/first_order.h"
#include "compile/machine_costs.h"
#include "partition/cost_model.h"
#include "partition/saved_values.h"
#include "runtime/wrappers.h"

namespace tandem {
namespace {

/// Storages of `values` that belong to none of `owned`, each counted once.
int64_t distinct_bytes(const Graph& graph, const std::vector<Value>& values,
                       const std::vector<Value>& owned) {
  std::unordered_set<int32_t> left_out;
  for (Value v : owned)
    if (v) left_out.insert(graph.meta(v).storage);
  std::unordered_map<int32_t, int64_t> sizes;
  for (Value v : values)
    if (!left_out.count(graph.meta(v).storage)) sizes.emplace(graph.meta(v).storage, 0);
  for (const Node& node : graph.nodes())
    for_each_result(node, [&](Value made) {
      if (auto size = sizes.find(graph.meta(made).storage); size != sizes.end())
        size->second = std::max(size->second, graph.meta(made).storage_bytes());
    });
  int64_t bytes = 0;
  for (const auto& [storage, size] : sizes) bytes += size;
  return bytes;
}

}  // namespace

Entry::Entry(const CompileRequest& request, const Tensors& arguments)
    : compilation_(request.options, request.function, request.signature),
      function_(request.function),
      remembered_(compilation_.options, request.only_key) {
  compilation_.added = [this](const char* what, size_t order, double seconds) {
    tell_backward(what, order, seconds);
    remember();
  };
  compilation_.found_unfit = [this](const std::string& why) { remembered_.note_unfit(why); };
  double seconds = 0;
  std::optional<Stopwatch> watch(std::in_place, seconds);
  for (const at::Tensor& argument : arguments)
    if (auto kind = uncompiled_kind(argument)) eager_reason = "an argument is " + *kind;
  if (eager_reason.empty()) {
    try {
      compile_for(request, arguments);
      if (!captures_are_alive())
        throw RunEagerly("a tensor that the function captured was gone when its trace ended");
    } catch (const CannotRun&) {
      throw;
    } catch (const UnsupportedError& reason) {
      eager_reason = reason.what();
      looks_at_data = !dynamic_cast<const RunEagerly*>(&reason);
      gets_second_chance = !request.is_second_chance && dynamic_cast<const KeepsState*>(&reason);
    }
  }
  if (!eager_reason.empty() && compilation_.options.must_compile)
    throw UnsupportedError(compilation_.options.name + (compilation_.options.name.empty() ? "" : ": ") +
                           eager_reason);
  if (!eager_reason.empty()) {
    log("compile", compilation_.options.name + ": runs as it is: " + eager_reason);
    remembered_.bypass_silently("it runs as it is: " + eager_reason);
    compilation_.captures.clear();
    captured_members_.clear();
    bases_.reset();
    reads_offsets_ = true;
  }
  names.clear();
  for (size_t a = 0; a < arguments.size(); ++a)
    names.push_back(a < request.argument_names.size() ? request.argument_names[a]
                                                      : "argument " + std::to_string(a));
  names.insert(names.end(), input_names_.end() - int64_t(compilation_.captures.size()), input_names_.end());
  signature = Signature(arguments, reach(arguments).value_or(Tensors()), request.watched, reads_offsets_,
                        Modes::now(!is_interpreted(compilation_.options)));
  watch.reset();
  if (!request.only_key) tell_compiled(seconds);
}

/// Only the trace tells what is written; where inputs overlap there, the program is traced again as a
/// function of what they are views of.
void Entry::compile_for(const CompileRequest& request, const Tensors& arguments) {
  try {
    return trace_and_plan(request, arguments);
  } catch (const OverlappingWrites& overlap) {
    merge_overlapping(overlap);
  }
  const Tensors members = bases_->members(arguments, *alive(captured_members_));
  const std::vector<std::string> given_names =
      bases_->argument_names(request.argument_names, arguments.size());
  const auto bases = bases_->bases(members);
  if (!bases)
    throw RunEagerly("tensors that share memory which the function writes are views of nothing in common");
  const detail::Program program = bases_->program(request.program, members, members_);
  Tensors leaves = request.leaves;
  for (const at::Tensor& member : members)
    if (member.defined() && member.requires_grad() && member.is_leaf()) leaves.push_back(member);
  try {
    trace_and_plan({program, request.options, given_names, request.name_capture, request.watched, leaves,
                    request.function, request.signature, request.only_key, request.runs,
                    request.is_second_chance, request.says_where},
                   bases_->arguments(*bases, arguments));
  } catch (const c10::Error& error) {
    // The program itself ran without, a moment ago.
    throw RunEagerly(std::string("it cannot be traced as a function of what its inputs are views of: ") +
                     error.what_without_backtrace());
  }
  for (const Group& group : bases_->groups())
    if (!group.known_to_autograd &&
        plan().roles.inputs[size_t(&group - bases_->groups().data())].write_recorded)
      throw RunEagerly("autograd sees writes to memory that inputs share without its knowledge");
  reads_offsets_ = true;
}

void Entry::merge_overlapping(const OverlappingWrites& overlap) {
  const auto& inputs = compilation_.traced.tracer->inputs();
  bases_.emplace(inputs, overlap.inputs, input_of_argument_, input_names_);
  for (const Group& group : bases_->groups())
    for (const Member& member : group.members)
      if (inputs[member.input].captured) captured_members_.emplace_back(inputs[member.input].real);
}

void Entry::trace_and_plan(const CompileRequest& request, const Tensors& arguments) {
  {
    Stopwatch watch(compilation_.times.trace);
    compilation_.traced = trace_forward(request.program, arguments,
                                        {compilation_.options.record_locations || request.says_where,
                                         bases_ ? &members_ : nullptr, request.leaves});
    compilation_.traced.members = std::move(members_);
  }
  if (!compilation_.traced.kept.empty()) hand_over_kept(request);
  // Another call may pass another tensor there, while the captured one stays.
  for (const TracedInput& input : compilation_.traced.tracer->inputs())
    if (input.also_captured) throw RunEagerly("an argument is also captured by the function");
  if (!captured_members_.empty() && has_own_code(compilation_.traced))
    throw RunEagerly(
        "custom functions or hooks may read a captured tensor that shares memory which the function writes");
  plan_traced(request, arguments);
  structure = compilation_.traced.structure;
  for (const InputRole& input : plan().roles.inputs)
    changes_metadata = changes_metadata || input.metadata_written;
  trains = !plan().tangent_sources.empty() && !plan().gradient_inputs.empty();
  if (trains) take_machine_costs(compilation_.options, compilation_.traced.tracer->graph());
  if (!request.only_key) {
    observe(compilation_.toolchain.sight("trace"), compilation_.traced.tracer->graph());
    if (is_observed("contract")) observe(compilation_.toolchain.sight("contract"), contract_of(plan().roles));
  }
  std::optional<JointGraph> joint = identify();
  if (request.only_key) return remembered_.look_up();
  if (!look_up()) {
    differentiate_and_compile(std::move(joint));
    remembered_.count_miss();
  }
  wrappers = make_wrappers(*this);
  compilation_.traced.tracer->release_real_tensors();
}

/// Compiled code would not make it anew. The program has run once for this call already, so its record is run
/// rather than the program once more.
void Entry::hand_over_kept(const CompileRequest& request) {
  const std::string reason = "it keeps " + describe_kept(compilation_.traced) + ", beyond the call";
  const bool may_run = request.runs && !compilation_.options.must_compile;
  try {
    if (may_run && can_be_replayed(compilation_.traced))
      replayed = detail::Returned{replay(compilation_.traced), compilation_.traced.structure};
    else
      give_data(*compilation_.traced.tracer, compilation_.traced.kept);
  } catch (...) {
    give_data(*compilation_.traced.tracer, compilation_.traced.kept);
    throw;
  }
  compilation_.traced = {};
  throw KeepsState(reason);
}

std::optional<JointGraph> Entry::identify() {
  {
    Stopwatch watch(compilation_.times.compile);
    remembered_.identify(compilation_.traced, plan(), compilation_.options);
    // The key describes the history as a whole.
    if (trains) compilation_.first = cut_into_pieces(compilation_.traced, plan(), compilation_.pieces);
  }
  if (!trains || !compilation_.traced.tracer->met_hosts_hooks()) return std::nullopt;
  std::optional<JointGraph> joint = differentiate();
  if (joint) remembered_.identify_by(joint->joint.graph);
  return joint;
}

bool Entry::look_up() {
  Stopwatch watch(compilation_.times.compile);
  remembered_.look_up();
  return remembered_.restore([this](cache::Found& found) { restore(found); });
}

std::optional<JointGraph> Entry::differentiate() {
  auto joint = differentiate_first(compilation_, backward_error_);
  // Eager reads it when the backward runs, and it may be another one by then.
  if (!joint && !backward_error_)
    throw RunEagerly("its backward reads a captured tensor that its forward does not");
  if (backward_error_) remembered_.bypass_silently("libtorch refuses its backward");
  return joint;
}

void Entry::differentiate_and_compile(std::optional<JointGraph> joint) {
  if (trains && !joint && !backward_error_) joint = differentiate();
  if (!joint) joint = make_inference_graph(compilation_.traced, plan());
  nodes_recorded_ = joint->nodes_recorded;
  eager_saved_bytes_ = joint->eager_saved_bytes;
  reads_offsets_ = joint->reads_offsets;
  {
    Stopwatch watch(compilation_.times.compile), own(compilation_.times.forward);
    split_and_compile(std::move(*joint));
  }
  if (!trains) remember();
}

void Entry::plan_traced(const CompileRequest& request, const Tensors& arguments) {
  read_inputs(arguments);
  name_inputs(request);
  compilation_.plan =
      plan_calls(compilation_.traced, input_names_, compilation_.options.keep_input_mutations);
  mark_static_arguments();
  compilation_.pieces = find_pieces(compilation_.traced, plan());
}

void Entry::split_and_compile(JointGraph made) {
  first_ = std::make_unique<Derivative>(compilation_);
  first_->split(std::move(made.joint), backward_error_);
  note_halves();
}

void Entry::note_halves() {
  forward = first_->forward;
  saved_count = first_->saved_count();
}

/// That the forward keeps for the backward besides what its caller has.
int64_t Entry::saved_bytes() const {
  if (!first_) return 0;
  const Graph& graph = first_->record().halves.forward;
  std::vector<Value> owned(graph.inputs());
  owned.insert(owned.end(), graph.outputs().begin(),
               graph.outputs().begin() + int64_t(first_->record().returned));
  return distinct_bytes(graph, first_->record().halves.saved, owned);
}

CallCounts Explanation::calls(Stage stage) const {
  CallCounts counts;
  for (const KernelInfo& kernel : kernels)
    if (kernel.stage == stage) ++(kernel.is_generated ? counts.kernels : counts.library_calls);
  return counts;
}

Explanation Entry::explain() {
  Explanation e;
  e.eager_reason = reason_to_run_as_it_is();
  if (!e.eager_reason.empty()) {
    e.cache_state = remembered_.state();
    e.bypass_reason = remembered_.reason();
    return e;
  }
  if (trains && !backward_error_) e.backward = first_->expected_backward();
  e.kernels = first_->expected_kernels();
  // Behind the trace another backward may be being recorded.
  std::lock_guard recording(compilation_.mutex);
  e.joint = first_->joint().graph;
  e.forward = first_->record().halves.forward;
  e.contract = contract_of(plan().roles);
  e.key = remembered_.fingerprint().key;
  e.cache_state = remembered_.state();
  e.bypass_reason = remembered_.reason();
  for (const cache::Component& component : remembered_.fingerprint().components)
    e.key_components.push_back(component.name + ": " + component.hash);
  e.saved_bytes = saved_bytes();
  e.eager_saved_bytes = eager_saved_bytes_;
  if (!e.backward.empty()) {
    const OrderRecord& first = first_->record();
    e.predicted_peak_bytes = predicted_peak_bytes(first.halves);
    e.saved = describe_saved(first.halves, first.returned,
                             cost_model_of({.cost_model = compilation_.options.cost_model}), first.marked);
  }
  e.nodes_recorded = nodes_recorded_;
  e.trace_seconds = compilation_.times.trace;
  e.compile_seconds = compilation_.times.compile;
  return e;
}

}  // namespace tandem
