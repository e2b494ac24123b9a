#include "runtime/compiled_node.h"

#include "base/host.h"
#include "runtime/batched.h"
#include "runtime/nan_source.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/utils.h>

namespace tandem {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

constexpr const char* compiled_name = "tandem::CompiledBackward";

/// The graph knows plain strided tensors without lazy bits.
at::Tensor plain(at::Tensor gradient) {
  if (!gradient.defined()) return gradient;
  if (gradient.layout() != at::kStrided) gradient = gradient.to_dense();
  if (gradient.is_conj()) gradient = gradient.resolve_conj();
  if (gradient.is_neg()) gradient = gradient.resolve_neg();
  return gradient;
}

/// Whether a tangent requires grad counts only where the gradients are differentiated in turn.
std::optional<Tangent> described(const at::Tensor& gradient) {
  if (!gradient.defined()) return std::nullopt;
  Tangent tangent;
  tangent.dtype = gradient.scalar_type();
  tangent.device = gradient.device();
  tangent.sizes.assign(gradient.sizes().begin(), gradient.sizes().end());
  tangent.strides.assign(gradient.strides().begin(), gradient.strides().end());
  tangent.requires_grad = gradient.requires_grad() && c10::GradMode::is_enabled();
  tangent.zero = gradient._is_zerotensor();
  return tangent;
}

/// Code reads memory, also where it is known to be zeros.
at::Tensor with_memory(at::Tensor gradient) {
  if (!gradient._is_zerotensor()) return gradient;
  const int64_t bytes = described(gradient)->storage_bytes();
  return at::zeros({bytes / int64_t(gradient.element_size())}, gradient.options())
      .as_strided(gradient.sizes(), gradient.strides());
}

Tensors run_without_autocast(Executable& code, Tensors&& inputs, size_t expected) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  Tensors results = code.run(std::move(inputs));
  if (results.size() != expected)
    throw Error("the compiled backward returned " + std::to_string(results.size()) + " tensors instead of " +
                std::to_string(expected));
  return results;
}

/// The gradients of a part, which has its places among all `positions`.
variable_list pick(const Tensors& results, const std::vector<int64_t>& positions, const OrderPart& part,
                   size_t count) {
  variable_list picked(count);
  for (size_t i = 0; i < part.leaves; ++i)
    if (const int64_t position = positions[part.first_leaf + i]; position >= 0)
      picked[i] = results[size_t(position)];
  return picked;
}

/// Stands before a node that several outputs lead to: each has its own hooks, which run where its gradient
/// comes by.
class Door final : public torch::autograd::Node {
 public:
  using Node::Node;
  variable_list apply(variable_list&& gradients) override { return std::move(gradients); }
  std::string name() const override { return compiled_name; }
};

}  // namespace

void share_versions(const Derivative& derivative, const Tensors& inputs, const Tensors& results,
                    Tensors& saved) {
  for (const Derivative::SharedVersion& shared : derivative.shared_versions) {
    const at::Tensor& owner = shared.of_input ? inputs[shared.owner] : results[shared.owner];
    at::Tensor& value = saved[shared.saved];
    if (!value.is_same(owner) && !owner.is_inference())
      torch::autograd::impl::set_version_counter(value, torch::autograd::impl::version_counter(owner));
  }
}

CompiledNode::CompiledNode(std::shared_ptr<Entry> entry, Derivative& derivative, size_t part,
                           edge_list&& edges, edge_list beyond, Orders orders)
    : Node(std::move(edges)),
      entry_(std::move(entry)),
      orders_(std::move(orders)),
      derivative_(derivative),
      part_(part),
      beyond_(std::move(beyond)) {}

std::string CompiledNode::name() const { return compiled_name; }

void CompiledNode::save(const Tensors& saved, const Tensors& results) {
  saved_.resize(saved.size());
  for (size_t i : derivative_.held_by(part_)) {
    const at::Tensor& tensor = saved[i];
    const bool is_output = std::any_of(results.begin(), results.end(),
                                       [&](const at::Tensor& result) { return result.is_same(tensor); });
    const bool is_own = is_output && tensor.grad_fn().get() == this;
    // What has its history from another node must not keep that alive, which may lead here.
    saved_[i] =
        SavedVariable(is_output && !is_own && tensor.requires_grad() ? tensor.detach() : tensor, is_own);
  }
}

variable_list CompiledNode::apply(variable_list&& gradients) {
  const std::vector<bool> passages = take_passages(gradients), came = all_that_come(gradients, passages);
  if (!brings_any(gradients, passages)) {
    pass_on(came, variable_list(num_outputs()));
    return variable_list(num_outputs());
  }
  try {
    if (!part().reentrant.empty() && refuse_reentrant(came)) return variable_list(num_outputs());
    variable_list found =
        run_rows(std::move(gradients), passages, !torch::autograd::get_current_graph_task_keep_graph());
    pass_on(came, found);
    return found;
  } catch (const Error& error) {
    if (raise_in_host()) raise_in_host()(error);
    throw;
  }
}

/// Eager's engine says so where certain gradients are asked for, rather than all that there are.
static bool asks_for_some() { return !torch::autograd::Engine::get_default_engine().is_checkpoint_valid(); }

/// There eager refuses to go through a reentrant checkpoint, and leads to nothing that the function in one
/// has read by itself. Returns whether nothing is left to be computed.
bool CompiledNode::refuse_reentrant(const std::vector<bool>& came) const {
  if (!asks_for_some()) return false;
  std::vector<bool> left(num_outputs());
  for (size_t i = 0; i < left.size(); ++i) left[i] = wants(i);
  for (const OrderPart::Reentrant& reentrant : part().reentrant)
    for (size_t i = 0; i < left.size(); ++i) {
      for (size_t s = 0; s < came.size(); ++s)
        TORCH_CHECK(!(came[s] && reentrant.sources[s] && reentrant.behind[i] && wants(i)),
                    "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing "
                    "an `inputs` parameter to .backward(). To resolve this error, you can either set "
                    "use_reentrant=False, or call .backward() without passing the `inputs` argument.");
      if (reentrant.own[i]) left[i] = false;
    }
  return std::none_of(left.begin(), left.end(), [](bool is_left) { return is_left; });
}

void CompiledNode::attach(at::Tensor& output) {
  if (part().sources == 1) {
    torch::autograd::set_history(output, getptr());
    own_.emplace_back();
    return;
  }
  const uint32_t place = add_input_metadata(output);
  auto door = make_node<Door>(torch::autograd::edge_list{{getptr(), place}});
  torch::autograd::set_history(output, NodePtr(door));
  own_.resize(place + 1);
  own_[place] = WeakNodePtr(NodePtr(std::move(door)));
}

/// Compiled code knows nothing of the dimensions that a vmap hides: it runs once for each of the backwards
/// that the vmap stands for.
variable_list CompiledNode::run_rows(variable_list&& gradients, const std::vector<bool>& passages,
                                     bool is_last) {
  if (auto batch = HiddenBatch::of(gradients)) {
    if (batch->size() == 0)
      throw UnsupportedError(
          "a compiled backward was given a batch of no gradients (is_grads_batched, vectorize=True)");
    std::vector<Tensors> rows;
    for (int64_t i = 0; i < batch->size(); ++i)
      rows.push_back(run_rows(batch->row(gradients, i), passages, is_last && i + 1 == batch->size()));
    return batch->join(rows);
  }
  for (at::Tensor& gradient : gradients) gradient = plain(std::move(gradient));
  const BackwardVariant asked = variant(gradients, passages);
  return c10::GradMode::is_enabled() ? run_differentiably(asked, std::move(gradients), is_last)
                                     : run(asked, std::move(gradients), is_last);
}

variable_list CompiledNode::run(const BackwardVariant& asked, variable_list&& gradients, bool is_last) {
  refuse_second(asked);
  const auto made = derivative_.backward(asked);
  const BackwardCode& code = *made;
  Tensors inputs = unpack(code.saved, gradients.size());
  if (is_last) give_up(asked, code.saved, &code.given_up);
  for (at::Tensor& gradient : gradients)
    if (gradient.defined()) inputs.push_back(with_memory(std::move(gradient)));
  const NanReport report(inputs);
  const Graph& graph = code.graph_in(derivative_.record().halves);
  variable_list found = pick(run_without_autocast(*code.code, std::move(inputs), graph.outputs().size()),
                             code.gradients, part(), num_outputs());
  report.check(found, graph, name());
  return found;
}

/// Under create_graph: the gradients get a node like this one, of the next order.
variable_list CompiledNode::run_differentiably(const BackwardVariant& asked, variable_list&& gradients,
                                               bool is_last) {
  if (!part().reentrant.empty())
    throw UnsupportedError(
        "a gradient that is to be differentiated in turn (create_graph) goes through a reentrant checkpoint; "
        "call the function as it is for this one, or set use_reentrant=False");
  refuse_second(asked);
  Orders orders = orders_;
  const Derivative& next = *orders.emplace_back(derivative_.next(asked));
  Tensors inputs = unpack(next.record().taken, gradients.size());
  if (is_last) give_up(asked, next.record().taken);
  torch::autograd::edge_list edges = edges_above();
  for (const at::Tensor& gradient : gradients) {
    if (!gradient.defined()) continue;
    inputs.push_back(with_memory(gradient));
    if (gradient.requires_grad()) edges.push_back(torch::autograd::impl::gradient_edge(gradient));
  }
  torch::autograd::edge_list used = edges;
  for (size_t i = 0; i < used.size(); ++i)
    if (!next.leads_to(i)) used[i] = {};
  Tensors results =
      run_without_autocast(*next.forward, Tensors(inputs), next.record().returned + next.saved_count());
  Tensors saved(std::make_move_iterator(results.begin() + int64_t(next.record().returned)),
                std::make_move_iterator(results.end()));
  results.resize(next.record().returned);
  if (!next.record().differentiable.empty()) {
    auto node = make_node<CompiledNode>(entry_, *orders.back(), 0, std::move(used), std::move(edges), orders);
    for (size_t i : next.record().differentiable) torch::autograd::set_history(results[i], node);
    share_versions(next, inputs, results, saved);
    node->save(saved, results);
  }
  variable_list found = pick(results, next.record().gradients, part(), num_outputs());
  NanReport(inputs).check(found, next.record().halves.forward, name());
  return found;
}

BackwardVariant CompiledNode::variant(const variable_list& gradients,
                                      const std::vector<bool>& passages) const {
  BackwardVariant variant;
  const BackwardVariant& all = derivative_.record().expected;
  variant.tangents.resize(all.tangents.size());
  variant.wanted.resize(all.wanted.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    std::optional<Tangent>& tangent = variant.tangents[part().first_source + i];
    const bool is_undefined = !passages.empty() && passages[i] && part().runs_own_code;
    tangent = is_undefined ? all.tangents[part().first_source + i] : described(gradients[i]);
    if (is_undefined) tangent->undefined = true;
  }
  for (size_t i = 0; i < num_outputs(); ++i) variant.wanted[part().first_leaf + i] = wants(i);
  if (!part().reentrant.empty() && asks_for_some())
    for (const OrderPart::Reentrant& reentrant : part().reentrant)
      for (size_t i = 0; i < num_outputs(); ++i)
        if (reentrant.own[i]) variant.wanted[part().first_leaf + i] = false;
  return variant;
}

/// Where the leaves of the next order lie. Its gradients may lead to what the caller got, which must not be
/// held here, since it leads here.
torch::autograd::edge_list CompiledNode::edges_above() {
  if (!derivative_.is_first()) return beyond_;
  torch::autograd::edge_list edges = next_edges();
  edges.insert(edges.end(), beyond_.begin(), beyond_.end());
  const Piece& piece = entry_->pieces().all[part_];
  for (size_t source : piece.own) {
    const size_t place = source - piece.first_source;
    NodePtr door = own_[place] ? own_[place]->lock() : NodePtr();
    edges.push_back(door ? torch::autograd::Edge(std::move(door), 0)
                         : torch::autograd::Edge(getptr(), uint32_t(place)));
  }
  return edges;
}

void CompiledNode::refuse_second(const BackwardVariant& asked) {
  std::lock_guard lock(mutex_);
  TORCH_CHECK(done_.empty() || !derivative_.refuse(done_, asked_of(asked)),
              torch::autograd::ERR_BACKWARD_TWICE);
}

Tensors CompiledNode::unpack(const std::vector<size_t>& wanted, size_t tangents) {
  std::lock_guard lock(mutex_);
  Tensors inputs;
  inputs.reserve(wanted.size() + tangents);
  for (size_t i : wanted) inputs.push_back(saved_[i].unpack(getptr()));
  return inputs;
}

/// Behind the last backward through a part of the history, each value dies at its last use inside the
/// compiled code, as in eager. `as_first` is what there is to give up where none was before.
void CompiledNode::give_up(const BackwardVariant& asked, const std::vector<size_t>& taken,
                           const std::vector<size_t>* as_first) {
  std::lock_guard lock(mutex_);
  done_.push_back(asked_of(asked));
  for (size_t i : done_.size() == 1 && as_first ? *as_first : derivative_.given_up(done_, taken, part_))
    saved_[i].reset_data();
}

}  // namespace tandem
