// What the compiled forward returns, and how the caller's tensors and outputs are made of it.
#include <ATen/MemoryOverlap.h>
#include <torch/csrc/autograd/variable.h>

#include <set>

#include "aot/reach.h"
#include "aot/sole_view.h"
#include "aot/view_history.h"
#include "aot/views.h"
#include "base/history.h"
#include "graph/geometry.h"
#include "ops/facts.h"

namespace tandem {
namespace {

class Planner {
 public:
  Planner(const Traced& traced, const std::vector<std::string>& names, bool keep)
      : traced_(traced), tracer_(*traced.tracer), trace_(tracer_.graph()), names_(names), keep_(keep), links_(find_views(trace_)) {}

  Plan run() {
    find_written_storages();
    for (const TracedInput& input : tracer_.inputs()) plan_input(input);
    find_overlapping_writes();
    for (const TracedMember& member : traced_.members) plan_member(member);
    group_outputs();
    for (const at::Tensor& output : traced_.outputs) plan_output(output);
    order_output_steps();
    find_differentiable();
    refuse_gradients_retained_inside(traced_, plan_.contract);
    plan_.gradients = traced_.gradients;
    return std::move(plan_);
  }

 private:
  void find_written_storages() {
    for (size_t n = 0; n < traced_.forward_nodes; ++n) {
      const Node& node = trace_.nodes()[n];
      note_reads(node);
      if (facts(node.op).changes_metadata)
        for (const auto& [before, after] : node.writes) reshaped_.insert(trace_.meta(before).storage);
      if (node.writes.empty() || facts(node.op).changes_metadata) continue;
      for (const auto& [before, after] : node.writes) written_.insert(trace_.meta(before).storage);
    }
  }

  /// What autograd sees: not what a node writes itself, nor what is detached.
  void note_reads(const Node& node) {
    if (node.op.operator_name().name == "aten::detach") return;
    for_each_argument(node, [&](Value read) {
      const int32_t storage = trace_.meta(read).storage;
      const bool is_written = std::any_of(node.writes.begin(), node.writes.end(), [&](const auto& write) { return write.first == read; });
      if (!is_written && !written_.count(storage) && !reshaped_.count(storage)) read_first_.insert(storage);
    });
  }

  // ---- inputs

  void plan_input(const TracedInput& input) {
    InputRole role;
    size_t index = plan_.contract.inputs.size();
    role.value = input.value;
    role.name = index < names_.size() && !names_[index].empty() ? names_[index] : "tensor " + std::to_string(index);
    role.captured = input.captured;
    role.requires_grad = input.leaf.requires_grad();
    role.data_written = written_.count(trace_.meta(input.value).storage) > 0;
    role.versions = version_of(input.visible) - input.version;
    Value last = tracer_.value_of(input.visible);
    if (role.data_written && at::has_internal_overlap(input.real) == at::MemOverlap::Yes)
      throw RunEagerly(role.name + " is written and holds one element in several places");
    if ((role.data_written || reshaped_.count(trace_.meta(input.value).storage)) && input.real.requires_grad() && input.real.is_view() && !input.real._base().requires_grad())
      throw RunEagerly(role.name + " is written, requires grad, and is a view of a tensor without");
    role.metadata_steps = metadata_steps(traced_, input.value, last);
    role.metadata_written = !role.metadata_steps.empty();
    // The node that gathers a leaf's gradient knows the leaf's sizes from when it is first used.
    if (role.metadata_written && input.real.requires_grad() && input.real.is_leaf()) throw RunEagerly(role.name + " is a leaf that requires grad and gets other sizes or strides");
    role.write_recorded = input.visible.requires_grad() && !is_boundary(input);
    role.starts_requiring_grad = input.visible.requires_grad() && input.visible.is_leaf() && !input.real.requires_grad();
    // Eager takes the gradient through the view's base, in another layout, which sums are rounded by.
    if (role.write_recorded && input.real.is_view() && tracer_.met_inner_gradient()) throw RunEagerly(role.name + " is a view and is written, and the function takes a gradient itself");
    if (role.write_recorded && writes_part_of_view_with_gaps(input)) throw RunEagerly(role.name + " is a view with gaps, and a part of it is written");
    if (role.starts_requiring_grad && role.metadata_written) throw RunEagerly(role.name + " gets other sizes or strides and starts to require grad");
    if (role.starts_requiring_grad && shares_memory(input)) throw RunEagerly("an input that shares memory with other inputs starts to require grad");
    if (role.starts_requiring_grad) role.write_recorded = false;
    role.retains_grad = input.visible.retains_grad();
    role.write_kept = keep_ && role.data_written && !role.metadata_written && !role.write_recorded;
    if (role.write_kept) plan_.kept_writes.push_back(input.value);
    if (role.data_written && !role.write_kept) {
      role.returned = plan_.returned.size();
      plan_.returned.push_back(input.visible);
    }
    const bool is_only_counted = !role.data_written && !role.metadata_written;
    if (role.versions > 0 && (role.write_kept || is_only_counted))
      (read_first_.count(trace_.meta(input.value).storage) ? plan_.counted_after : plan_.counted_before).push_back(index);
    if (role.requires_grad) plan_.gradient_inputs.push_back(index);
    plan_.contract.inputs.push_back(std::move(role));
  }

  /// Eager differentiates writes to a view through its base: what lies before a write to a part gets a dense copy of the gradient there, which sums are rounded by.
  static bool writes_part_of_view_with_gaps(const TracedInput& input) {
    if (!input.real.is_view() || input.real.is_non_overlapping_and_dense()) return false;
    const auto nodes = nodes_behind({input.visible});
    return std::any_of(nodes.begin(), nodes.end(), [](const torch::autograd::Node* node) { return node->name() == "torch::autograd::CopySlices"; });
  }

  bool shares_memory(const TracedInput& input) const {
    const int32_t storage = trace_.meta(input.value).storage;
    if (std::any_of(traced_.members.begin(), traced_.members.end(), [&](const TracedMember& member) { return trace_.meta(member.value).storage == storage; })) return true;
    return std::any_of(tracer_.inputs().begin(), tracer_.inputs().end(),
                       [&](const TracedInput& other) { return other.value != input.value && trace_.meta(other.value).storage == storage; });
  }

  /// Nothing that autograd saw has been written to this input.
  static bool is_boundary(const TracedInput& input) {
    auto edge = torch::autograd::impl::gradient_edge(input.visible);
    return input.visible.is_leaf() || edge.function->name() == "tandem::InputBoundary";
  }

  /// Autograd refuses to differentiate views that came in lists, or were made under no_grad, once the version of their memory is another; tensors that are inputs each have a version of their own here.
  bool has_frail_views(int32_t storage) const {
    for (size_t n = 0; n < traced_.forward_nodes; ++n) {
      const bool is_recorded = tracer_.modes()[n].grad_mode;
      for (const Operand& result : trace_.nodes()[n].results) {
        bool is_on_it = false;
        for_each_value(result, [&](Value made) { is_on_it = is_on_it || trace_.meta(made).storage == storage; });
        if (is_on_it && (!is_recorded || std::holds_alternative<std::vector<Value>>(result))) return true;
      }
    }
    return false;
  }

  void find_overlapping_writes() {
    std::map<int32_t, std::vector<size_t>> inputs_on;
    for (size_t i = 0; i < plan_.contract.inputs.size(); ++i) inputs_on[trace_.meta(plan_.contract.inputs[i].value).storage].push_back(i);
    std::vector<std::vector<size_t>> overlapping;
    std::string names;
    for (const auto& [storage, inputs] : inputs_on) {
      on_inputs_.insert(storage);
      if (inputs.size() < 2) continue;
      if (reshaped_.count(storage) && has_frail_views(storage))
        throw RunEagerly(plan_.contract.inputs[inputs[0]].name + " and " + plan_.contract.inputs[inputs[1]].name + " share memory, and one of them gets other sizes or strides");
      if (!written_.count(storage)) continue;
      overlapping.push_back(inputs);
      if (names.empty()) names = plan_.contract.inputs[inputs[0]].name + " and " + plan_.contract.inputs[inputs[1]].name;
    }
    if (!overlapping.empty()) throw OverlappingWrites(names + " share memory that the function writes", std::move(overlapping));
  }

  /// Its elements are the base's; sizes, strides and versions are its own.
  void plan_member(const TracedMember& member) {
    InputRole role;
    role.value = member.value;
    role.name = member.name;
    role.captured = member.captured;
    role.requires_grad = member.requires_grad;
    role.view_of = member.base;
    role.metadata_steps = metadata_steps(traced_, member.value, tracer_.value_of(member.fake));
    role.metadata_written = !role.metadata_steps.empty();
    // They count when the member's own sizes and strides change, and its versions are the base's.
    size_t& versions = plan_.contract.inputs[member.base].versions;
    versions -= std::min(versions, role.metadata_steps.size());
    role.write_recorded = member.fake.requires_grad();
    role.retains_grad = member.fake.retains_grad();
    if (member.requires_grad != member.fake.requires_grad() && !plan_.contract.inputs[member.base].write_recorded)
      throw RunEagerly("an input that shares memory with others starts or stops to require grad");
    plan_.contract.inputs.push_back(std::move(role));
  }

  // ---- outputs

  int32_t storage_of(const at::Tensor& fake) const { return trace_.meta(tracer_.value_of(fake)).storage; }

  void group_outputs() {
    for (const at::Tensor& output : traced_.outputs) {
      if (!output.defined()) continue;
      auto& together = outputs_on_[storage_of(output)];
      if (std::none_of(together.begin(), together.end(), [&](const at::Tensor& other) { return other.is_same(output); })) together.push_back(output);
    }
  }

  void plan_output(const at::Tensor& output) {
    OutputRole role;
    if (!output.defined()) {
      role.source = OutputSource::None;
      plan_.contract.outputs.push_back(std::move(role));
      return;
    }
    if (auto earlier = same_output(output)) {
      role = plan_.contract.outputs[*earlier];
      if (role.source == OutputSource::Fresh) role.source = OutputSource::ViewOfOutput;
      role.same_as = earlier;
      plan_.contract.outputs.push_back(std::move(role));
      return;
    }
    role.value = tracer_.value_of(output);
    role.requires_grad = output.requires_grad();
    role.retains_grad = output.retains_grad();
    if (on_inputs_.count(storage_of(output)))
      plan_view_of_input(output, role);
    else
      plan_own_output(output, role);
    plan_.contract.outputs.push_back(std::move(role));
  }

  /// The first output that is this tensor, where one was planned already.
  std::optional<size_t> same_output(const at::Tensor& output) const {
    for (size_t i = 0; i < plan_.contract.outputs.size(); ++i)
      if (traced_.outputs[i].is_same(output)) return i;
    return std::nullopt;
  }

  /// What an output may be a view of, with its place in the contract: the nearest first.
  std::vector<std::pair<at::Tensor, size_t>> visible_inputs() const {
    std::vector<std::pair<at::Tensor, size_t>> visible;
    for (size_t m = 0; m < traced_.members.size(); ++m) visible.emplace_back(traced_.members[m].fake, tracer_.inputs().size() + m);
    for (size_t i = 0; i < tracer_.inputs().size(); ++i) visible.emplace_back(tracer_.inputs()[i].visible, i);
    return visible;
  }

  void plan_view_of_input(const at::Tensor& output, OutputRole& role) {
    std::optional<OutputRole> of_its_own;
    for (const auto& [base, index] : visible_inputs()) {
      if (storage_of(base) != storage_of(output)) continue;
      role.base = index;
      if (output.is_same(base)) {
        role.source = OutputSource::Input;
        return;
      }
      auto steps = view_steps(trace_, links_, tracer_.value_of(base), role.value);
      if (!steps) continue;
      if (output.requires_grad() && output.is_leaf() && !base.requires_grad()) throw RunEagerly("the function returns a leaf that it makes");
      role.source = OutputSource::ViewOfInput;
      role.steps = std::move(*steps);
      if (plan_view(output, base, role)) return;
      if (!of_its_own) of_its_own = role;
    }
    if (!of_its_own) throw RunEagerly("an output is a view of an input that no view operator made");
    // Eager writes what a custom function returned neither; other views of inputs it does, and their bases get a history of it.
    if (auto node = output.grad_fn(); is_generated(*node) || node->name() == "CopySlices") throw RunEagerly("an output is a view of an input and has a history of its own");
    role = std::move(*of_its_own);
    role.tracked = false;
    role.differentiable = true;
    later_sources_.push_back(output);
  }

  /// False where the gradient of the view is not that of its base.
  bool plan_view(const at::Tensor& output, const at::Tensor& base, OutputRole& role) {
    if (output.requires_grad() && !base.requires_grad()) throw RunEagerly("an output requires grad although what it is a view of does not");
    const bool has_history = output.grad_fn() != nullptr;
    role.tracked = has_history || (!base.requires_grad() && !is_made_under_no_grad(output));
    if (auto steps = regenerated_steps(tracer_, links_, output, base, role.steps))
      role.steps = std::move(*steps);
    else if (has_history)
      return autograd_sees_only_views(output, base, role.steps.size());
    else if (output.requires_grad() && torch::autograd::impl::get_autograd_meta(output)->requires_grad_)
      throw RunEagerly("the function returns a leaf that it makes");
    else if (output.requires_grad() && std::any_of(role.steps.begin(), role.steps.end(), [](const ViewStep& step) { return step.op.schema().name() == "aten::detach"; }))
      throw RunEagerly("an output requires grad, was made under no_grad, and is a view of a detached tensor");
    return true;
  }

  void plan_own_output(const at::Tensor& output, OutputRole& role) {
    if (output.requires_grad() && output.is_leaf() && !is_untracked_view(output)) throw RunEagerly("the function returns a leaf that it makes");
    if (output.is_view() && output._base().requires_grad() && output._base().is_leaf()) throw RunEagerly("the function returns a view of a leaf that it makes");
    if (output.is_view() && output.grad_fn() && !output._base().requires_grad()) throw RunEagerly("the function returns a view of a tensor that it detached in place");
    const at::Tensor base = base_on(storage_of(output));
    role.base = returned(base);
    note_versions(role.base);
    role.source = output.is_same(base) ? OutputSource::Fresh : OutputSource::ViewOfOutput;
    if (role.source == OutputSource::Fresh) return;
    auto steps = view_steps(trace_, links_, tracer_.value_of(base), role.value);
    if (!steps) throw RunEagerly("outputs share memory in a way that no view operator made");
    role.steps = std::move(*steps);
    if (!plan_view(output, base, role)) throw RunEagerly("outputs that share memory have gradients of their own");
  }

  /// What the caller gets the outputs of this memory as views of: as in eager where that can be said in view operators, one of them otherwise.
  const at::Tensor& base_on(int32_t storage) {
    auto [found, fresh] = bases_on_.try_emplace(storage);
    if (!fresh) return found->second;
    const std::vector<at::Tensor>& together = outputs_on_[storage];
    const at::Tensor& first = together.front();
    if (first.is_view() && are_views_of(at::Tensor(first._base()), together)) found->second = first._base();
    else found->second = together.size() > 1 ? base_of(together) : is_untracked_view(first) ? base_of({first, at::Tensor(first._base())}) : first;
    return found->second;
  }

  bool are_views_of(const at::Tensor& base, const std::vector<at::Tensor>& together) {
    return as_fake(base) && std::all_of(together.begin(), together.end(), [&](const at::Tensor& output) {
      if (output.is_same(base)) return true;
      auto steps = view_steps(trace_, links_, tracer_.value_of(base), tracer_.value_of(output));
      if (!steps) return false;
      OutputRole role;
      role.steps = std::move(*steps);
      try {
        return plan_view(output, base, role);
      } catch (const RunEagerly&) {
        return false;
      }
    });
  }

  /// A write to a view of such a tensor, an expanded one, is differentiated through what that is a view of in turn.
  bool holds_elements_twice(const at::Tensor& output) const { return output.is_view() && !is_surely_injective(trace_.meta(tracer_.value_of(output))); }

  /// The one of them that the others are views of, or what all of them are views of.
  at::Tensor base_of(const std::vector<at::Tensor>& together) {
    auto is_base = [&](const at::Tensor& candidate) {
      return std::all_of(together.begin(), together.end(), [&](const at::Tensor& other) {
        return candidate.is_same(other) || view_steps(trace_, links_, tracer_.value_of(candidate), tracer_.value_of(other));
      });
    };
    for (const at::Tensor& candidate : together)
      if (!is_untracked_view(candidate) && !holds_elements_twice(candidate) && is_base(candidate)) return candidate;
    for (const at::Tensor& candidate : together) {
      if (!candidate.is_view()) continue;
      at::Tensor base(candidate._base());
      if (as_fake(base) && is_base(base)) return base;
    }
    throw RunEagerly("outputs share memory with each other but not with a tensor that both are views of");
  }

  void order_output_steps() {
    std::vector<std::pair<int32_t, OutputStep>> made;
    const auto& outputs = plan_.contract.outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      Value value = outputs[i].value;
      const size_t steps = outputs[i].same_as ? 0 : outputs[i].steps.size();
      if (steps == 0) made.push_back({value.id, {i, 0}});
      for (size_t step = steps; step-- > 0; value = links_[size_t(value.id)].parent) made.push_back({value.id, {i, step}});
    }
    std::stable_sort(made.begin(), made.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [value, step] : made) plan_.output_steps.push_back(step);
  }

  void note_versions(size_t result) {
    const uint32_t version = version_of(plan_.returned[result]);
    auto& noted = plan_.written_results;
    if (version > 0 && std::none_of(noted.begin(), noted.end(), [&](const auto& other) { return other.first == result; })) noted.emplace_back(result, version);
  }

  size_t returned(const at::Tensor& fake) {
    for (size_t i = 0; i < plan_.returned.size(); ++i)
      if (plan_.returned[i].is_same(fake)) return i;
    plan_.returned.push_back(fake);
    return plan_.returned.size() - 1;
  }

  // ---- gradients

  void find_differentiable() {
    for (size_t i = 0; i < plan_.returned.size(); ++i) {
      if (!plan_.returned[i].requires_grad() || is_untouched_leaf(i)) continue;
      plan_.differentiable.push_back(i);
      plan_.tangent_sources.push_back(plan_.returned[i]);
      plan_.sole_views.push_back(sole_view(traced_, plan_, i));
    }
    // The run time makes outputs in the order in which the program made them, and each gets the next tangent.
    std::stable_sort(later_sources_.begin(), later_sources_.end(), [this](const at::Tensor& a, const at::Tensor& b) { return tracer_.value_of(a).id < tracer_.value_of(b).id; });
    for (const at::Tensor& source : later_sources_) plan_.tangent_sources.push_back(source);
    plan_.sole_views.resize(plan_.tangent_sources.size());
    if (!plan_.tangent_sources.empty() && plan_.gradient_inputs.empty()) throw RunEagerly("an output requires grad although no input does");
    for (const at::Tensor& source : plan_.tangent_sources) plan_.contract.tangents.push_back(tracer_.value_of(source));
    plan_.unreached = unreached_inputs(traced_, plan_);
    plan_.saving = saving_nodes(tracer_, plan_.tangent_sources, plan_.gradient_inputs);
  }

  /// Contents written behind autograd's back have no gradient of their own.
  bool is_untouched_leaf(size_t returned) const {
    for (const InputRole& role : plan_.contract.inputs)
      if (role.data_written && !role.write_kept && role.returned == returned) return !role.write_recorded;
    return false;
  }

  const Traced& traced_;
  const Tracer& tracer_;
  const Graph& trace_;
  const std::vector<std::string>& names_;
  const bool keep_;
  const std::vector<ViewLink> links_;
  std::set<int32_t> written_;                ///< storages that the forward writes
  std::set<int32_t> reshaped_;               ///< storages of which some view got other sizes or strides in place
  std::set<int32_t> read_first_;             ///< storages that the forward reads before any of that
  std::set<int32_t> on_inputs_;
  std::map<int32_t, std::vector<at::Tensor>> outputs_on_;
  std::map<int32_t, at::Tensor> bases_on_;   ///< by the storages of outputs
  Tensors later_sources_;
  Plan plan_;
};

}  // namespace

Plan plan_calls(const Traced& traced, const std::vector<std::string>& input_names, bool keep_input_mutations) {
  try {
    return Planner(traced, input_names, keep_input_mutations).run();
  } catch (const c10::Error& error) {
    // Asking a view for its history is an error where its base was written in a way that autograd forbids; in eager nobody may ever ask.
    throw RunEagerly(std::string("libtorch refuses the gradients of a tensor that it returns: ") + error.what_without_backtrace());
  }
}

}  // namespace tandem
