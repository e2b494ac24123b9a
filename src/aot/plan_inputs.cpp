// What becomes of the inputs of a call.
#include <ATen/MemoryOverlap.h>
#include <torch/csrc/autograd/variable.h>

#include "aot/planner.h"
#include "aot/view_history.h"
#include "base/history.h"
#include "ops/facts.h"

namespace tandem {

void Planner::find_written_storages() {
  for (size_t n = 0; n < traced_.forward_nodes; ++n) {
    const Node& node = trace_.nodes()[n];
    note_reads(node);
    if (facts(node.op).changes_metadata)
      for (const auto& [before, after] : node.writes) reshaped_.insert(trace_.meta(before).storage);
    if (node.writes.empty() || facts(node.op).changes_metadata) continue;
    for (const auto& [before, after] : node.writes) written_.insert(trace_.meta(before).storage);
  }
}

void Planner::note_reads(const Node& node) {
  if (node.op.operator_name().name == "aten::detach") return;
  for_each_argument(node, [&](Value read) {
    const int32_t storage = trace_.meta(read).storage;
    const bool is_written = std::any_of(node.writes.begin(), node.writes.end(),
                                        [&](const auto& write) { return write.first == read; });
    if (!is_written && !written_.count(storage) && !reshaped_.count(storage)) read_first_.insert(storage);
  });
}

void Planner::plan_input(const TracedInput& input) {
  InputRole role;
  size_t index = plan_.roles.inputs.size();
  role.value = input.value;
  role.name =
      index < names_.size() && !names_[index].empty() ? names_[index] : "tensor " + std::to_string(index);
  role.captured = input.captured;
  role.requires_grad = input.leaf.requires_grad();
  role.data_written = written_.count(trace_.meta(input.value).storage) > 0;
  role.versions = version_of(input.visible) - input.version;
  Value last = tracer_.value_of(input.visible);
  if (role.data_written && at::has_internal_overlap(input.real) == at::MemOverlap::Yes)
    throw RunEagerly(role.name + " is written and holds one element in several places");
  if ((role.data_written || reshaped_.count(trace_.meta(input.value).storage)) &&
      input.real.requires_grad() && input.real.is_view() && !input.real._base().requires_grad())
    throw RunEagerly(role.name + " is written, requires grad, and is a view of a tensor without");
  role.metadata_steps = metadata_steps(traced_, input.value, last);
  role.metadata_written = !role.metadata_steps.empty();
  // The node that gathers a leaf's gradient knows the leaf's sizes from when it is first used.
  if (role.metadata_written && input.real.requires_grad() && input.real.is_leaf())
    throw RunEagerly(role.name + " is a leaf that requires grad and gets other sizes or strides");
  role.write_recorded = input.visible.requires_grad() && !is_boundary(input);
  role.starts_requiring_grad =
      input.visible.requires_grad() && input.visible.is_leaf() && !input.real.requires_grad();
  // Eager takes the gradient through the view's base, in another layout, which sums are rounded by.
  if (role.write_recorded && input.real.is_view() && tracer_.met_inner_gradient())
    throw RunEagerly(role.name + " is a view and is written, and the function takes a gradient itself");
  if (role.write_recorded && writes_part_of_view_with_gaps(input))
    throw RunEagerly(role.name + " is a view with gaps, and a part of it is written");
  if (role.write_recorded && input.real.is_view() && !input.required_grad && is_written_behind_a_view(input))
    throw RunEagerly(role.name + " is a view, and is written behind a view of it that has a history");
  if (role.starts_requiring_grad && role.metadata_written)
    throw RunEagerly(role.name + " gets other sizes or strides and starts to require grad");
  if (role.starts_requiring_grad && shares_memory(input))
    throw RunEagerly("an input that shares memory with other inputs starts to require grad");
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
    (read_first_.count(trace_.meta(input.value).storage) ? plan_.counted_after : plan_.counted_before)
        .push_back(index);
  if (role.requires_grad) plan_.gradient_inputs.push_back(index);
  plan_.roles.inputs.push_back(std::move(role));
}

bool Planner::writes_part_of_view_with_gaps(const TracedInput& input) {
  if (!input.real.is_view() || input.real.is_non_overlapping_and_dense()) return false;
  const auto nodes = nodes_behind({input.visible});
  return std::any_of(nodes.begin(), nodes.end(), writes_part);
}

bool Planner::is_written_behind_a_view(const TracedInput& input) {
  const auto nodes = nodes_behind({input.visible});
  return !writes_part(input.visible.grad_fn().get()) && std::any_of(nodes.begin(), nodes.end(), writes_part);
}

/// A dense tensor is what it is a view of, and autograd lets it be written.
static bool is_plain_view(const at::Tensor& real) {
  if (!real.is_view() || real.is_conj() || real.is_neg()) return false;
  const at::Tensor base(real._base());
  return base.dtype() == real.dtype() && base.is_non_overlapping_and_dense() && !base.is_conj() &&
         torch::autograd::impl::get_view_autograd_meta(real)->get_creation_meta() ==
             torch::autograd::CreationMeta::DEFAULT;
}

bool Planner::shares_memory(const TracedInput& input) const {
  const int32_t storage = trace_.meta(input.value).storage;
  if (std::any_of(traced_.members.begin(), traced_.members.end(),
                  [&](const TracedMember& member) { return trace_.meta(member.value).storage == storage; }))
    return true;
  return std::any_of(tracer_.inputs().begin(), tracer_.inputs().end(), [&](const TracedInput& other) {
    return other.value != input.value && trace_.meta(other.value).storage == storage;
  });
}

bool Planner::is_boundary(const TracedInput& input) {
  auto edge = torch::autograd::impl::gradient_edge(input.visible);
  return input.visible.is_leaf() || edge.function->name() == "tandem::InputBoundary";
}

bool Planner::has_frail_views(int32_t storage) const {
  for (size_t n = 0; n < traced_.forward_nodes; ++n) {
    const bool is_recorded = tracer_.modes()[n].grad_mode;
    for (const Operand& result : trace_.nodes()[n].results) {
      bool is_on_it = false;
      for_each_value(result,
                     [&](Value made) { is_on_it = is_on_it || trace_.meta(made).storage == storage; });
      if (is_on_it && (!is_recorded || std::holds_alternative<std::vector<Value>>(result))) return true;
    }
  }
  return false;
}

bool Planner::is_read_between_writes(size_t index) const {
  const at::Tensor& real = tracer_.inputs()[index].real;
  if (!traced_.members.empty() || !plan_.roles.inputs[index].write_recorded || !is_plain_view(real))
    return false;
  const int32_t storage = trace_.meta(plan_.roles.inputs[index].value).storage;
  bool is_written = false, is_read = false;
  for (size_t n = 0; n < traced_.forward_nodes; ++n) {
    const Node& node = trace_.nodes()[n];
    const bool writes = std::any_of(node.writes.begin(), node.writes.end(), [&](const auto& write) {
      return trace_.meta(write.first).storage == storage;
    });
    if (writes && is_read) return true;
    is_written = is_written || writes;
    if (is_written && !writes)
      for_each_argument(node, [&](Value v) { is_read = is_read || trace_.meta(v).storage == storage; });
  }
  return false;
}

void Planner::find_overlapping_writes() {
  std::map<int32_t, std::vector<size_t>> inputs_on;
  for (size_t i = 0; i < plan_.roles.inputs.size(); ++i)
    inputs_on[trace_.meta(plan_.roles.inputs[i].value).storage].push_back(i);
  std::vector<std::vector<size_t>> overlapping;
  std::string names;
  for (const auto& [storage, inputs] : inputs_on) {
    on_inputs_.insert(storage);
    if (inputs.size() < 2 && !is_read_between_writes(inputs[0])) continue;
    if (inputs.size() > 1 && reshaped_.count(storage) && has_frail_views(storage))
      throw RunEagerly(plan_.roles.inputs[inputs[0]].name + " and " + plan_.roles.inputs[inputs[1]].name +
                       " share memory, and one of them gets other sizes or strides");
    if (!written_.count(storage)) continue;
    overlapping.push_back(inputs);
    if (names.empty())
      names = plan_.roles.inputs[inputs.front()].name + " and " +
              (inputs.size() > 1 ? plan_.roles.inputs[inputs.back()].name : "what it is a view of");
  }
  if (!overlapping.empty())
    throw OverlappingWrites(names + " share memory that the function writes", std::move(overlapping));
}

void Planner::plan_member(const TracedMember& member) {
  InputRole role;
  role.value = member.value;
  role.name = member.name;
  role.captured = member.captured;
  role.requires_grad = member.requires_grad;
  role.view_of = member.base;
  role.metadata_steps = metadata_steps(traced_, member.value, tracer_.value_of(member.fake));
  role.metadata_written = !role.metadata_steps.empty();
  // They count when the member's own sizes and strides change, and its versions are the base's.
  size_t& versions = plan_.roles.inputs[member.base].versions;
  versions -= std::min(versions, role.metadata_steps.size());
  role.write_recorded = member.fake.requires_grad();
  role.retains_grad = member.fake.retains_grad();
  if (member.requires_grad != member.fake.requires_grad() && !plan_.roles.inputs[member.base].write_recorded)
    throw RunEagerly("an input that shares memory with others starts or stops to require grad");
  plan_.roles.inputs.push_back(std::move(role));
}

}  // namespace tandem
