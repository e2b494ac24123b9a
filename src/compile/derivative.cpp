#include "compile/derivative.h"

#include <c10/util/flat_hash_map.h>

#include <tandem/passes.h>

#include <torch/csrc/autograd/variable.h>

#include "base/counters.h"
#include "base/history.h"
#include "base/log.h"
#include "compile/random_numbers.h"
#include "key/named_code.h"
#include "partition/extract.h"
#include "passes/standard.h"

namespace tandem {
namespace {

Partitioner partitioner_for(const Options& options) {
  return options.partition_fn ? options.partition_fn : find_partitioner(options.partitioner);
}

}  // namespace

const Order& Derivative::order() const {
  if (!below_) return compilation_.first;
  if (!order_)
    order_ = std::move(compilation_
                           .recorded([&] {
                             return make_next_order(compilation_.traced, compilation_.plan, below_->order(),
                                                    record_.variant);
                           })
                           .order);
  return *order_;
}

/// What the order above will read and the halves do not save.
std::vector<Value> Derivative::missing_for_next_order() const {
  std::vector<Value> missing;
  if (!has_fickle_backward(joint_.graph) && !compilation_.traced.tracer->met_zeros()) return missing;
  for (size_t p = 0; p < parts_.size(); ++p)
    add_missing(expected_of(parts_[p], record_.expected), p, missing);
  return missing;
}

void Derivative::add_missing(BackwardVariant most, size_t part, std::vector<Value>& missing) const {
  for (auto& tangent : most.tangents)
    if (tangent) tangent->requires_grad = true;
  try {
    NextOrder next = compilation_.recorded(
        [&] { return make_next_order(compilation_.traced, compilation_.plan, order(), most); });
    if (!next.refusal.empty()) throw UnsupportedError(next.refusal);
    for (Value value : missing_values(with_passes(std::move(next.joint), &joint_), kept(part)))
      if (std::find(missing.begin(), missing.end(), value) == missing.end()) missing.push_back(value);
  } catch (const NoNextOrder&) {
    // It says so when it is asked for.
  } catch (const UnsupportedError& reason) {
    // Eager may be asked for the next order as well as for this one.
    if (number_ == 1)
      throw RunEagerly(std::string("its second derivative cannot be compiled: ") + reason.what());
  } catch (const std::exception&) {
    // A next order that cannot be recorded now says so when it is asked for.
  }
}

Derivative::Derivative(Compilation& compilation)
    : compilation_(compilation), number_(1), parts_(compilation.first.parts) {
  record_.expected = expected_variant(compilation.first);
}

Derivative::Derivative(const Derivative& below, const BackwardVariant& asked)
    : compilation_(below.compilation_), below_(&below), number_(below.number_ + 1) {
  NextOrder next = compilation_.recorded(
      [&] { return make_next_order(compilation_.traced, compilation_.plan, below.order(), asked); });
  order_ = std::move(next.order);
  record_.variant = asked;
  record_.expected = expected_variant(*order_);
  parts_ = order_->parts;
  record_.has_expected = next.complete;
  record_.differentiable = std::move(next.sources);
  record_.returned = next.gradients;
  joint_ = with_passes(std::move(next.joint), &below.joint(), &marks_);
  const bool is_last = record_.differentiable.empty();
  auto extract_and_partition = [&](const std::vector<Value>& must_save) {
    Extracted extracted = extract_next_order(joint_, below.kept(part_of(below.parts_, asked)), next.tangents,
                                             next.gradients, must_save);
    record_.taken = std::move(extracted.saved);
    if (is_last)
      record_.halves.forward =
          narrowing() ? without_detours(std::move(extracted.joint.graph)) : std::move(extracted.joint.graph);
    else
      partition(extracted.joint, must_save);
  };
  extract_and_partition({});
  if (!is_last)
    if (const std::vector<Value> missing = missing_for_next_order(); !missing.empty())
      extract_and_partition(missing);
  find_shared_versions();
  find_held();
  record_.gradients = positions(asked.wanted, record_.halves.forward);
  refuse_states();
  forward = compilation_.toolchain.compile(record_.halves.forward, forward_place());
}

Joint Derivative::with_passes(Joint joint, const Joint* below, Marks* marks) const {
  joint.graph = with_wanted_numbers(std::move(joint.graph), compilation_);
  joint.graph = run_standard_passes(
      std::move(joint.graph), wanted_decompositions(compilation_.options),
      wanted_passes(compilation_.options, Stage::Joint),
      compilation_.traced.tracer->met_saved_tensor_hooks() ? Reruns::Apart : Reruns::Merged);
  Marks found = take_marks(joint);
  if (marks) *marks = std::move(found);
  if (std::optional<Narrowing> narrow = narrowing()) {
    narrow->below = below;
    joint = with_narrow_forms(std::move(joint), *narrow);
  }
  observe(compilation_.toolchain.sight("joint", number_), joint.graph);
  return joint;
}

std::optional<Narrowing> Derivative::narrowing() const {
  const Options& options = compilation_.options;
  if (!partitioner_for(options).takes_narrow_forms) return std::nullopt;
  Narrowing narrow;
  if (options.memory_budget < 1 || options.memory_budget_bytes) return narrow;
  narrow.fuses = fuses();
  return narrow.fuses && !is_interpreted(options) ? std::optional(narrow) : std::nullopt;
}

std::function<bool(const Graph&, const Node&)> Derivative::fuses() const {
  const Options& options = compilation_.options;
  if (own_compiler(options, Stage::Backward)) return {};
  return [backend = find_backend(options.backend)](const Graph& graph, const Node& node) {
    return backend->fuses(graph, node);
  };
}

void Derivative::split(Joint joint, std::exception_ptr error) {
  joint_ = with_passes(std::move(joint), nullptr, &marks_);
  error_ = std::move(error);
  record_.returned = joint_.forward_outputs;
  const bool has_backward = !order().sources.empty() && !order().leaves.empty() && !error_;
  if (has_backward) {
    partition(joint_, {});
    if (const std::vector<Value> missing = missing_for_next_order(); !missing.empty())
      partition(joint_, missing);
    find_shared_versions();
    find_leftovers();
  } else {
    record_.halves.forward = run_passes(joint_.graph, wanted_passes(compilation_.options, Stage::Inference));
  }
  find_held();
  refuse_states();
  forward = compilation_.toolchain.compile(record_.halves.forward, forward_place());
}

void Derivative::refuse_states() const {
  compilation_.toolchain.refuse_states(record_.halves.forward, forward_place().stage);
  compilation_.toolchain.refuse_states(record_.halves.backward, Stage::Backward);
}

/// Where the forward's inputs come from says which of them stay, and which nobody else will read.
CodePlace Derivative::forward_place() const {
  CodePlace place{.stage = number_ > 1      ? Stage::Backward
                           : has_backward() ? Stage::Forward
                                            : Stage::Inference,
                  .order = number_};
  if (below_) {
    const CodePlace saved = below_->backward_place(record_.taken, 0);
    place.static_inputs = saved.static_inputs;
    place.donated_inputs = saved.donated_inputs;
    place.first_tangent = saved.first_tangent;
    return place;
  }
  const auto& inputs = compilation_.plan.roles.inputs;
  for (size_t i = 0; i < record_.halves.forward.inputs().size(); ++i)
    if (inputs[i].captured || inputs[i].stays) place.static_inputs.push_back(i);
  return place;
}

CodePlace Derivative::backward_place(const std::vector<size_t>& saved, size_t variant) const {
  CodePlace place{
      .stage = Stage::Backward, .order = number_, .variant = variant, .first_tangent = saved.size()};
  const std::vector<size_t> stay = forward_place().static_inputs;
  std::vector<const SharedVersion*> shared(saved_count());
  for (const SharedVersion& version : shared_versions) shared[version.saved] = &version;
  for (size_t i = 0; i < saved.size(); ++i) {
    const SharedVersion* version = shared[saved[i]];
    // A view of what stays where it is stays there as well; they are in order.
    if (version && version->of_input && std::binary_search(stay.begin(), stay.end(), version->owner))
      place.static_inputs.push_back(i);
    const auto holders = std::count_if(held_.begin(), held_.end(), [&](const auto& held) {
      return std::binary_search(held.begin(), held.end(), saved[i]);
    });
    if (holders <= 1 && !version) place.donated_inputs.push_back(i);
  }
  return place;
}

std::vector<Value> Derivative::given_back(const Joint& joint) const {
  const Roles& roles = compilation_.plan.roles;
  std::vector<Value> found;
  for (const OutputRole& output : roles.outputs)
    if (output.source == OutputSource::Input || output.source == OutputSource::ViewOfInput)
      found.push_back(joint.graph.inputs()[roles.inputs[output.base].view_of.value_or(output.base)]);
  return found;
}

void Derivative::partition(const Joint& joint, std::vector<Value> must_save) {
  count("partition");
  const Options& options = compilation_.options;
  PartitionContext context{.memory_budget = options.memory_budget,
                           .must_save = std::move(must_save),
                           .memory_budget_bytes = options.memory_budget_bytes,
                           .given_back = below_ ? std::vector<Value>() : given_back(joint),
                           .cost_model = options.cost_model,
                           .marked_must_save = made_in_memory_of(joint.graph, marks_.must_save),
                           .marked_prefer_recompute = made_in_memory_of(joint.graph, marks_.prefer_recompute),
                           .fuses = fuses()};
  const Partitioner partitioner = partitioner_for(options);
  record_.halves = partitioner(joint, context);
  if (below_ && narrowing()) record_.halves.forward = without_detours(std::move(record_.halves.forward));
  verify(record_.halves, joint, context, partitioner.name.empty() ? "partition_fn" : partitioner.name);
  record_.marked = places_made_with(context.marked_must_save, record_.halves);
  record_.halves.forward =
      run_passes(std::move(record_.halves.forward), wanted_passes(compilation_.options, Stage::Forward));
}

void Derivative::find_shared_versions() {
  const Graph& graph = record_.halves.forward;
  ska::flat_hash_map<int32_t, size_t> inputs, outputs;  // by storage
  ska::flat_hash_map<int32_t, size_t> input_itself;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    inputs.emplace(graph.meta(graph.inputs()[i]).storage, i);
    input_itself.emplace(graph.inputs()[i].id, i);
  }
  for (size_t i = 0; i < record_.returned; ++i)
    if (graph.outputs()[i]) outputs.emplace(graph.meta(graph.outputs()[i]).storage, i);
  for (size_t s = 0; s < record_.halves.saved.size(); ++s) {
    const Value saved = record_.halves.saved[s];
    const int32_t storage = graph.meta(saved).storage;
    if (auto itself = input_itself.find(saved.id); itself != input_itself.end())
      shared_versions.push_back({s, itself->second, true});
    else if (auto input = inputs.find(storage); input != inputs.end())
      shared_versions.push_back({s, input->second, true});
    else if (auto output = outputs.find(storage); output != outputs.end())
      shared_versions.push_back({s, output->second, false});
  }
}

/// What the order above that one would read of zeros without memory may not have been kept; it was for those
/// that have memory.
std::unique_ptr<Derivative> Derivative::above(const BackwardVariant& asked) const {
  try {
    return std::make_unique<Derivative>(*this, asked);
  } catch (const UnsupportedError&) {
    BackwardVariant with_memory = asked;
    for (std::optional<Tangent>& tangent : with_memory.tangents)
      if (tangent) tangent->zero = false;
    if (with_memory == asked) throw;
    auto made = std::make_unique<Derivative>(*this, with_memory);
    made->record_.variant = asked;
    return made;
  }
}

std::shared_ptr<Derivative> Derivative::next(const BackwardVariant& asked) {
  if (auto known = above_.find(asked)) return known;
  std::lock_guard lock(compilation_.mutex);
  if (error_) std::rethrow_exception(error_);
  open();
  if (auto known = above_.find(asked)) return known;
  // Of a sum of gradients the parts come one by one here, and a hook that is not linear tells the difference.
  const OrderPart& part = parts_[part_of(parts_, asked)];
  const auto first_source = order().sources.begin() + int64_t(part.first_source);
  if (have_hooks_behind(Tensors(first_source, first_source + int64_t(part.sources))))
    throw UnsupportedError(
        "a gradient that is to be differentiated in turn (create_graph) goes through hooks that the compiled "
        "function registers on tensors; call the function as it is for this one");
  double seconds = 0;
  std::shared_ptr<Derivative> made;
  try {
    Stopwatch watch(compilation_.times.compile), own(compilation_.times.backward), here(seconds);
    made = above(asked);
  } catch (const UnsupportedError& reason) {
    throw UnsupportedError(std::string("a gradient that is to be differentiated in turn (create_graph) "
                                       "cannot be compiled here; call the function as it is for this one: ") +
                           reason.what());
  }
  if (above_.add(made)) say_that_one_went("backwards under create_graph", most_orders_above);
  compilation_.added("higher_order", number_ + 1, seconds);
  return made;
}

}  // namespace tandem
