#include "runtime/wrappers.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <optional>

#include "aot/views.h"
#include "runtime/node.h"

namespace tandem {
namespace {

void count_writes(const at::Tensor& tensor, size_t writes) {
  if (tensor.is_inference()) return;
  for (size_t i = 0; i < writes; ++i) torch::autograd::impl::bump_version(tensor);
}

/// The graph wrote these inputs below autograd, which counts versions.
class BumpVersions final : public Wrapper {
 public:
  explicit BumpVersions(std::vector<size_t> inputs) : inputs_(std::move(inputs)) {}
  const char* name() const override { return "bump versions of written inputs"; }
  void after(RunningCall& call) const override {
    for (size_t i : inputs_) count_writes(call.inputs[i], call.entry->plan().roles.inputs[i].versions);
  }

 private:
  std::vector<size_t> inputs_;
};

/// Before anything is saved that shares their versions.
class CountResults final : public Wrapper {
 public:
  const char* name() const override { return "count writes to results"; }
  void after(RunningCall& call) const override {
    for (const auto& [result, version] : call.entry->plan().written_results)
      count_writes(call.results[result], version);
  }
};

/// Outputs with gradients get the compiled nodes.
class AttachNodes final : public Wrapper {
 public:
  const char* name() const override { return "attach the backward"; }
  void after(RunningCall& call) const override { attach_compiled_nodes(call); }
};

/// Behind what changes sizes and strides, which counts as a write but moves no data; before what does.
class SaveValues final : public Wrapper {
 public:
  const char* name() const override { return "keep what the backward reads"; }
  void after(RunningCall& call) const override { save_values(call); }
};

/// `t_()` and its kin, on the caller's own tensors.
class ChangeMetadata final : public Wrapper {
 public:
  const char* name() const override { return "change sizes and strides of inputs"; }
  void after(RunningCall& call) const override {
    const auto& inputs = call.entry->plan().roles.inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].metadata_written) {
        at::AutoGradMode grad(at::GradMode::is_enabled() && inputs[i].write_recorded);
        for (const ViewStep& step : inputs[i].metadata_steps) replay(step, call.inputs[i]);
        const size_t counted = inputs[i].metadata_steps.size() + inputs[i].data_written;
        if (inputs[i].versions > counted) count_writes(call.inputs[i], inputs[i].versions - counted);
      }
  }
};

/// New contents that the graph returned go into the caller's tensors, seen by autograd where the program's
/// own write was.
class WriteBack final : public Wrapper {
 public:
  explicit WriteBack(std::vector<size_t> inputs) : inputs_(std::move(inputs)) {}
  const char* name() const override { return "write inputs back"; }
  void after(RunningCall& call) const override {
    const auto& roles = call.entry->plan().roles.inputs;
    for (size_t i : inputs_) write(call.inputs[i], call.results[roles[i].returned], roles[i]);
  }

 private:
  static void write(const at::Tensor& input, const at::Tensor& result, const InputRole& role) {
    // A copy that autograd sees would give the old contents a gradient of zeros, and adding those changes -0;
    // a view's history is its base's, which only a copy rewrites.
    const bool seen = role.write_recorded && input.is_view();
    {
      at::AutoGradMode grad(seen);
      std::optional<at::AutoDispatchBelowADInplaceOrView> below;
      if (role.versions == 0) below.emplace();
      input.copy_(result);
    }
    if (role.versions > 1 && !role.metadata_written) count_writes(input, role.versions - 1);
    if (role.write_recorded && !seen)
      torch::autograd::impl::rebase_history(input, torch::autograd::impl::gradient_edge(result));
  }

  std::vector<size_t> inputs_;
};

class RequireGrad final : public Wrapper {
 public:
  const char* name() const override { return "inputs start to require grad"; }
  void after(RunningCall& call) const override {
    const auto& inputs = call.entry->plan().roles.inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].starts_requiring_grad) call.inputs[i].set_requires_grad(true);
  }
};

const at::Tensor& base_of(const OutputRole& role, const RunningCall& call) {
  const bool of_input = role.source == OutputSource::Input || role.source == OutputSource::ViewOfInput;
  return of_input ? call.inputs[role.base] : call.results[role.base];
}

at::Tensor start(const OutputRole& role, const RunningCall& call) {
  if (role.same_as) return call.outputs[*role.same_as];
  if (role.source == OutputSource::None) return {};
  return role.differentiable ? base_of(role, call).detach() : base_of(role, call);
}

void take(RunningCall& call, const OutputStep& taken) {
  using Kind = OutputStep::Kind;
  const auto [output, step, from, kind] = taken;
  const OutputRole& role = call.entry->plan().roles.outputs[output];
  at::Tensor& made = call.outputs[output];
  if (from)
    made = call.outputs[*from];
  else if (step == 0)
    made = start(role, call);
  if (role.same_as || kind == Kind::Shared) return;
  if (step < role.steps.size()) {
    at::AutoGradMode grad(role.tracked);
    if (kind == Kind::Taken) call.siblings = replay_all(role.steps[step], made);
    made = call.siblings[role.steps[step].result];
  }
  if (role.made_as && step + 1 == role.steps.size())
    torch::autograd::impl::get_view_autograd_meta(made)->set_creation_meta(*role.made_as);
  if (role.differentiable && !call.nodes.empty() && step + 1 >= role.steps.size())
    attach_to_view(call, output);
}

/// What the caller gets: results, the inputs themselves, or views rebuilt on either.
class MakeOutputs final : public Wrapper {
 public:
  const char* name() const override { return "make outputs"; }
  void after(RunningCall& call) const override { make_outputs(call, call.entry->pieces().last_steps); }
};

/// `retain_grad()` on what the caller has: inputs that are no leaves, and outputs.
class RetainGrad final : public Wrapper {
 public:
  const char* name() const override { return "gradients are retained"; }
  void after(RunningCall& call) const override {
    const Roles& roles = call.entry->plan().roles;
    for (size_t i = 0; i < roles.inputs.size(); ++i)
      if (roles.inputs[i].retains_grad) call.inputs[i].retain_grad();
    for (size_t i = 0; i < roles.outputs.size(); ++i)
      if (roles.outputs[i].retains_grad) call.outputs[i].retain_grad();
  }
};

/// What the program left in captured leaves, or took from there.
class SetGradients final : public Wrapper {
 public:
  const char* name() const override { return "gradients of captured leaves"; }
  void after(RunningCall& call) const override {
    const Plan& plan = call.entry->plan();
    const auto& inputs = plan.roles.inputs;
    for (const TracedGradient& gradient : plan.gradients) {
      const auto leaf = std::find_if(inputs.begin(), inputs.end(),
                                     [&](const InputRole& input) { return input.value == gradient.leaf; });
      call.inputs[size_t(leaf - inputs.begin())].mutable_grad() =
          gradient.output ? call.outputs[*gradient.output] : at::Tensor();
    }
    call.outputs.resize(call.outputs.size() - count_gradients(plan.gradients));
  }
};

}  // namespace

void make_outputs(RunningCall& call, const std::vector<OutputStep>& steps) {
  call.outputs.resize(call.entry->plan().roles.outputs.size());
  for (const OutputStep& step : steps) take(call, step);
  call.siblings.clear();
}

std::vector<std::unique_ptr<Wrapper>> make_wrappers(const Entry& entry) {
  std::vector<std::unique_ptr<Wrapper>> wrappers;
  const auto& inputs = entry.plan().roles.inputs;
  auto any = [&](auto&& wanted) { return std::any_of(inputs.begin(), inputs.end(), wanted); };
  auto bump_versions = [&](const std::vector<size_t>& counted) {
    if (!counted.empty()) wrappers.push_back(std::make_unique<BumpVersions>(counted));
  };
  bump_versions(entry.plan().counted_before);
  if (!entry.plan().written_results.empty()) wrappers.push_back(std::make_unique<CountResults>());
  if (any([](const InputRole& i) { return i.starts_requiring_grad; }))
    wrappers.push_back(std::make_unique<RequireGrad>());
  if (entry.trains) wrappers.push_back(std::make_unique<AttachNodes>());
  bump_versions(entry.plan().counted_after);
  if (entry.changes_metadata) wrappers.push_back(std::make_unique<ChangeMetadata>());
  // Views of one tensor have one version: a write to one of them must count before another one is saved,
  // unless what is saved is written itself.
  std::vector<size_t> apart, saved;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].data_written && !inputs[i].write_kept)
      (entry.saves_memory_of(i) ? saved : apart).push_back(i);
  if (!apart.empty()) wrappers.push_back(std::make_unique<WriteBack>(apart));
  if (entry.trains) wrappers.push_back(std::make_unique<SaveValues>());
  if (!saved.empty()) wrappers.push_back(std::make_unique<WriteBack>(saved));
  wrappers.push_back(std::make_unique<MakeOutputs>());
  const auto& outputs = entry.plan().roles.outputs;
  if (any([](const InputRole& i) { return i.retains_grad; }) ||
      std::any_of(outputs.begin(), outputs.end(), [](const OutputRole& o) { return o.retains_grad; }))
    wrappers.push_back(std::make_unique<RetainGrad>());
  if (!entry.plan().gradients.empty()) wrappers.push_back(std::make_unique<SetGradients>());
  return wrappers;
}

}  // namespace tandem
