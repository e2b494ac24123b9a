#include <tandem/export.h>

#include <tandem/passes.h>

#include <set>

#include "aot/functionalize.h"
#include "aot/joint.h"
#include "aot/replay.h"
#include "ops/facts.h"
#include "partition/marks.h"
#include "passes/standard.h"

namespace tandem::detail {
namespace {

/// Raised as RunEagerly is: there is nothing to export.
void refuse_state(const Traced& traced) {
  if (!traced.gradients.empty())
    throw RunEagerly("the function changes the gradient of a tensor that it captured");
  if (traced.kept.empty()) return;
  give_data(*traced.tracer, traced.kept);
  throw RunEagerly("the function keeps " + describe_kept(traced) + ", beyond the call");
}

class Exporter {
 public:
  Exporter(const Program& program, const std::shared_ptr<torch::nn::Module>& state, const Tensors& example,
           std::optional<size_t> loss)
      : state_(state), loss_(loss) {
    collect_state();
    Tensors all = state_tensors_;
    all.insert(all.end(), example.begin(), example.end());
    for (size_t i = 0; i < example.size(); ++i) {
      if (auto kind = uncompiled_kind(example[i]))
        throw UnsupportedError("argument " + std::to_string(i) + " is " + *kind +
                               ", which cannot be exported");
      exported_.inputs.push_back({ExportedInput::Kind::Argument, "argument " + std::to_string(i)});
    }
    refuse_duplicates(all);
    Program with_state = [&program, skip = state_tensors_.size()](const Tensors& in) {
      return program(Tensors(in.begin() + int64_t(skip), in.end()));
    };
    try {
      traced_ = trace_forward(with_state, all);
      refuse_state(traced_);
    } catch (const RunEagerly& reason) {
      throw UnsupportedError(std::string("export: ") + reason.what());
    }
    refuse_written_duplicates();
  }

  Exported run() {
    name_captures();
    find_writes();
    Tensors gradients = loss_ ? differentiate() : Tensors();
    std::vector<Value> outputs = updates_, gradient_values;
    for (size_t i = 0; i < traced_.outputs.size(); ++i) {
      outputs.push_back(traced_.outputs[i].defined() ? tracer().value_of(traced_.outputs[i]) : Value{});
      exported_.outputs.push_back({ExportedOutput::Kind::Output, std::to_string(i)});
    }
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      gradient_values.push_back(tracer().value_of(gradients[i]));
      exported_.outputs.push_back(
          {ExportedOutput::Kind::Gradient, exported_.inputs[gradient_inputs_[i]].name});
    }
    try {
      FunctionalGraph functional =
          functionalize({tracer().graph(), traced_.forward_nodes, outputs, {}, gradient_values});
      Joint whole{run_standard_passes(std::move(functional.graph), {}, registered_passes(Stage::Joint))};
      take_marks(whole);
      exported_.graph = run_passes(std::move(whole.graph), registered_passes(Stage::Inference));
    } catch (const RunEagerly& reason) {
      throw UnsupportedError(std::string("export: ") + reason.what());
    }
    return std::move(exported_);
  }

 private:
  Tracer& tracer() { return *traced_.tracer; }

  void collect_state() {
    if (!state_) return;
    for (const auto& item : state_->named_parameters()) {
      exported_.inputs.push_back({ExportedInput::Kind::Parameter, item.key()});
      state_tensors_.push_back(item.value());
    }
    for (const auto& item : state_->named_buffers()) {
      exported_.inputs.push_back({ExportedInput::Kind::Buffer, item.key()});
      state_tensors_.push_back(item.value());
    }
  }

  void refuse_duplicates(const Tensors& all) {
    std::set<const c10::TensorImpl*> seen;
    for (const at::Tensor& tensor : all)
      if (tensor.defined() && !seen.insert(tensor.unsafeGetTensorImpl()).second)
        duplicated_.insert(tensor.unsafeGetTensorImpl());
  }

  void refuse_written_duplicates() {
    const Graph& trace = tracer().graph();
    std::set<int32_t> written;
    for (const Node& node : trace.nodes())
      for (const auto& [before, after] : node.writes) written.insert(trace.meta(before).storage);
    std::map<int32_t, size_t> first;
    for (size_t i = 0; i < tracer().inputs().size(); ++i) {
      const TracedInput& input = tracer().inputs()[i];
      int32_t storage = trace.meta(input.value).storage;
      if (!written.count(storage)) continue;
      if (duplicated_.count(input.real.unsafeGetTensorImpl()))
        throw UnsupportedError("export: the same tensor is given twice and written; give it once");
      if (!first.emplace(storage, i).second)
        throw UnsupportedError(
            "export: two inputs overlap in memory and one of them is written; give copies");
    }
    if (!duplicated_.empty())
      throw UnsupportedError("export: the same tensor is given twice; give it once, or a copy");
  }

  void name_captures() {
    size_t count = 0;
    for (const TracedInput& input : tracer().inputs()) {
      if (!input.captured) continue;
      exported_.inputs.push_back(
          {ExportedInput::Kind::Capture, "captured tensor " + std::to_string(count++)});
      exported_.captures.push_back(input.real);
    }
  }

  void find_writes() {
    const Graph& trace = tracer().graph();
    std::set<int32_t> written;
    for (const Node& node : trace.nodes())
      if (!facts(node.op).changes_metadata)
        for (const auto& [before, after] : node.writes) written.insert(trace.meta(before).storage);
    for (size_t i = 0; i < tracer().inputs().size(); ++i) {
      const TracedInput& input = tracer().inputs()[i];
      const std::string& name = exported_.inputs[i].name;
      if (tracer().value_of(input.visible) != input.value)
        throw UnsupportedError("export: the sizes or strides of " + name + " are changed in place");
      if (!written.count(trace.meta(input.value).storage)) continue;
      if (input.leaf.requires_grad() && (loss_ || !state_))
        throw UnsupportedError("export: " + name +
                               " requires grad and is written; return the new value instead");
      updates_.push_back(input.value);
      exported_.outputs.push_back({ExportedOutput::Kind::Update, name});
    }
  }

  Tensors differentiate() {
    if (*loss_ >= traced_.outputs.size())
      throw ContractError("export_joint: there is no output " + std::to_string(*loss_));
    const at::Tensor& loss = traced_.outputs[*loss_];
    if (!loss.defined() || loss.numel() != 1 || !loss.requires_grad())
      throw UnsupportedError("export_joint: output " + std::to_string(*loss_) +
                             " must be a scalar that requires grad to be the loss");
    for (size_t i = 0; i < traced_.outputs.size(); ++i)
      if (i != *loss_ && traced_.outputs[i].defined() && traced_.outputs[i].requires_grad())
        throw UnsupportedError("export_joint: output " + std::to_string(i) +
                               " requires grad and is not the loss; detach it");
    Tensors leaves;
    for (size_t i = 0; i < tracer().inputs().size(); ++i) {
      if (!tracer().inputs()[i].leaf.requires_grad()) continue;
      leaves.push_back(tracer().inputs()[i].leaf);
      gradient_inputs_.push_back(i);
    }
    return tracer().differentiate({loss}, leaves, {at::Tensor()});
  }

  std::shared_ptr<torch::nn::Module> state_;
  std::optional<size_t> loss_;
  Tensors state_tensors_;
  Traced traced_;
  std::set<const c10::TensorImpl*> duplicated_;
  std::vector<Value> updates_;
  std::vector<size_t> gradient_inputs_;
  Exported exported_;
};

}  // namespace

Exported export_program(const Program& program, const std::shared_ptr<torch::nn::Module>& state,
                        const Tensors& example, std::optional<size_t> loss) {
  return Exporter(program, state, example, loss).run();
}

Joint export_program_with_tangents(const Program& program, const Tensors& example) {
  try {
    Traced traced = trace_forward(program, example);
    refuse_state(traced);
    Plan plan = plan_calls(traced, {}, false);
    const Order order = first_order(traced, plan);
    auto joint = make_joint_graph(traced, plan, order, expected_variant(order));
    if (!joint) throw UnsupportedError("export: the backward reads tensors that it captured");
    joint->joint.graph =
        run_standard_passes(std::move(joint->joint.graph), {}, registered_passes(Stage::Joint));
    take_marks(joint->joint);
    return std::move(joint->joint);
  } catch (const RunEagerly& reason) {
    throw UnsupportedError(std::string("export: ") + reason.what());
  }
}

}  // namespace tandem::detail

namespace tandem {

Tensors Exported::operator()(const Tensors& tensors) const {
  Tensors all = tensors;
  all.insert(all.end(), captures.begin(), captures.end());
  if (all.size() != graph.inputs().size())
    throw ContractError("the exported graph takes " +
                        std::to_string(graph.inputs().size() - captures.size()) + " tensors and was given " +
                        std::to_string(tensors.size()));
  for (size_t i = 0; i < all.size(); ++i) {
    const TensorMeta& meta = graph.meta(graph.inputs()[i]);
    if (!all[i].defined() || all[i].sizes() != at::IntArrayRef(meta.sizes) ||
        all[i].scalar_type() != meta.dtype || all[i].device() != meta.device)
      throw ContractError(inputs[i].name +
                          " does not have the sizes, dtype and device that the graph was exported with");
  }
  at::NoGradGuard no_grad;
  return graph.run(std::move(all));
}

}  // namespace tandem
