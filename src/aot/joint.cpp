#include "aot/joint.h"

#include <tandem/build.h>
#include <torch/csrc/autograd/variable.h>

#include <chrono>
#include <set>

#include "aot/functionalize.h"
#include "aot/sole_view.h"
#include "base/counters.h"
#include "graph/geometry.h"
#include "graph/vocabulary.h"
#include "trace/custom_edges.h"

namespace tandem {
namespace {

std::vector<Value> values_of(const Tracer& tracer, const Tensors& fakes) {
  std::vector<Value> values;
  for (const at::Tensor& fake : fakes) values.push_back(fake.defined() ? tracer.value_of(fake) : Value{});
  return values;
}

/// Dense outputs get tangents of their own layout; others plain contiguous ones.
TensorMeta expected_tangent(const at::Tensor& source) {
  TensorMeta meta;
  meta.dtype = source.scalar_type();
  meta.device = source.device();
  meta.sizes.assign(source.sizes().begin(), source.sizes().end());
  if (source.is_non_overlapping_and_dense())
    meta.strides.assign(source.strides().begin(), source.strides().end());
  else
    meta.strides = dense_strides(source.sizes());
  return meta;
}

int64_t bytes_read_by_backward(const Graph& trace, size_t forward_nodes, const std::vector<Value>& outputs) {
  std::set<int32_t> left_out;
  for (Value input : trace.inputs()) left_out.insert(trace.meta(input).storage);
  for (Value output : outputs)
    if (output) left_out.insert(trace.meta(output).storage);
  std::map<int32_t, int64_t> sizes;
  auto note = [&](Value made) {
    int64_t& size = sizes[trace.meta(made).storage];
    size = std::max(size, trace.meta(made).storage_bytes());
  };
  for (size_t n = 0; n < forward_nodes; ++n) for_each_result(trace.nodes()[n], note);
  int64_t bytes = 0;
  for (size_t n = forward_nodes; n < trace.nodes().size(); ++n)
    for_each_argument(trace.nodes()[n], [&](Value read) {
      int32_t storage = trace.meta(read).storage;
      auto forward = sizes.find(storage);
      if (forward != sizes.end() && left_out.insert(storage).second) bytes += forward->second;
    });
  return bytes;
}

/// While it lives, the trace goes on behind what was recorded for an order.
class Continued {
 public:
  Continued(Traced& traced, const Order& order)
      : tracer_(*traced.tracer), forward_nodes_(traced.forward_nodes), inputs_(tracer_.inputs().size()) {
    tracer_.resume(order.nodes, order.tangents);
  }
  ~Continued() { tracer_.truncate(forward_nodes_, inputs_); }
  Continued(const Continued&) = delete;

 private:
  Tracer& tracer_;
  size_t forward_nodes_, inputs_;
};

/// Comes by the nodes that it leads to and brings them no gradient, as libtorch's engine does behind a node
/// that has none for them.
struct Nothing : torch::autograd::Node {
  using Node::Node;
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override {
    return torch::autograd::variable_list(num_outputs());
  }
  std::string name() const override { return "tandem::Nothing"; }
};

/// The arguments of one autograd::grad.
struct Differentiation {
  Tensors arrived;  ///< the tangents as inputs of the graph
  Tensors sources, leaves, tangents;

  Differentiation(Tracer& tracer, const Order& order, const BackwardVariant& variant, Phase phase) {
    torch::autograd::edge_list come_by;
    for (size_t i = 0; i < order.sources.size(); ++i) {
      if (!variant.tangents[i]) continue;
      const Tangent& tangent = *variant.tangents[i];
      if (tangent.undefined) {
        come_by.push_back(torch::autograd::impl::gradient_edge(order.sources[i]));
        continue;
      }
      arrived.push_back(tracer.add_tangent(tangent));
      if (tangent.zero) tracer.as_zero(arrived.back());
      const SoleView* view =
          i < order.sole_views.size() && order.sole_views[i] ? &*order.sole_views[i] : nullptr;
      sources.push_back(view ? view->view : order.sources[i]);
      tangents.push_back(
          view ? tracer.record_tangent(phase, [&] { return tangent_of_view(*view, arrived.back()); })
               : arrived.back());
    }
    for (size_t i = 0; i < order.leaves.size(); ++i)
      if (variant.wanted[i]) leaves.push_back(order.leaves[i]);
    if (!come_by.empty()) bring_nothing(tracer, std::move(come_by));
  }

 private:
  /// autograd::grad takes no gradient that is undefined.
  void bring_nothing(Tracer& tracer, torch::autograd::edge_list&& to) {
    const TensorMeta number{.dtype = at::kFloat};
    sources.push_back(tracer.add_end(number));
    tangents.push_back(tracer.add_end(number));
    auto nothing = make_node<Nothing>(std::move(to));
    const uint32_t place = nothing->add_input_metadata(sources.back());
    torch::autograd::impl::set_gradient_edge(sources.back(), {NodePtr(std::move(nothing)), place});
  }
};

/// Some second derivatives may not exist, and a backward that asks only for others must find what it reads:
/// so each source and each leaf is tried alone.
Tensors gradients_that_exist(Tracer& tracer, const Differentiation& all) {
  constexpr size_t most_attempts = 64;
  Tensors found;
  if (all.sources.size() + all.leaves.size() > most_attempts) return found;
  auto attempt = [&](const Tensors& sources, const Tensors& leaves, const Tensors& tangents) {
    try {
      for (at::Tensor& gradient : tracer.differentiate(sources, leaves, tangents))
        found.push_back(std::move(gradient));
    } catch (const std::exception&) {
    }
  };
  for (size_t i = 0; i < all.sources.size(); ++i) attempt({all.sources[i]}, all.leaves, {all.tangents[i]});
  for (const at::Tensor& leaf : all.leaves) attempt(all.sources, {leaf}, all.tangents);
  return found;
}

/// Zeros without memory, laid out like what they stand for.
Value append_zeros(Graph& graph, const TensorMeta& like, Phase phase) {
  Builder build(graph, phase);
  auto zeros_of = [&](const Dims& sizes) {
    return build.call("aten::_efficientzerotensor",
                      {c10::IValue(c10::IntArrayRef(sizes)), c10::IValue(like.dtype), c10::IValue(),
                       c10::IValue(like.device)});
  };
  const Value zeros = zeros_of(like.sizes);
  if (same_strides(like.sizes, graph.meta(zeros).strides, like.strides)) return zeros;
  // Their storage has a size, which strides are held to.
  const int64_t spanned = like.storage_bytes() / int64_t(c10::elementSize(like.dtype));
  return build.call("aten::as_strided", {zeros_of({spanned}), c10::IValue(c10::IntArrayRef(like.sizes)),
                                         c10::IValue(c10::IntArrayRef(like.strides))});
}

/// Gradients of zeros without memory leave as these, for whoever computes with them treats them so; the first
/// of them belong to the forward.
void leave_as_zeros(Graph& graph, size_t first, const Tensors& gradients, size_t in_forward) {
  std::vector<Value> outputs = graph.outputs();
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].defined() && as_fake(gradients[i])->zero)
      outputs[first + i] = append_zeros(graph, TensorMeta(graph.meta(outputs[first + i])),
                                        i < in_forward ? Phase::Forward : Phase::Backward);
  graph.set_outputs(std::move(outputs));
}

FunctionalGraph functionalize_behind(const Traced& traced, const Plan& plan, const Tensors& gradients,
                                     size_t in_forward) {
  const Tracer& tracer = *traced.tracer;
  auto made = functionalize({tracer.graph(), traced.forward_nodes, values_of(tracer, plan.returned),
                             plan.kept_writes, values_of(tracer, gradients)});
  // Autograd's zeros without memory cannot be added to in place, which is how compiled code sums gradients.
  static const c10::OperatorHandle zeros = find_op("aten::zeros");
  for (Node& node : made.graph.nodes())
    if (node.op.operator_name().name == "aten::_efficientzerotensor") node.op = zeros;
  if (tracer.met_zeros()) leave_as_zeros(made.graph, plan.returned.size(), gradients, in_forward);
  return made;
}

}  // namespace

Order first_order(const Traced& traced, const Plan& plan) {
  Order order;
  order.sources = plan.tangent_sources;
  order.sole_views = plan.sole_views;
  for (size_t i : plan.gradient_inputs) order.leaves.push_back(traced.tracer->inputs()[i].leaf);
  order.parts = {{0, order.sources.size(), 0, order.leaves.size()}};
  return order;
}

BackwardVariant expected_variant(const Order& order) {
  BackwardVariant variant;
  for (const at::Tensor& source : order.sources)
    variant.tangents.push_back(Tangent{expected_tangent(source)});
  variant.wanted.assign(order.leaves.size(), true);
  return variant;
}

JointGraph make_inference_graph(const Traced& traced, const Plan& plan) {
  const Graph& trace = traced.tracer->graph();
  FunctionalGraph functional = functionalize(
      {trace, traced.forward_nodes, values_of(*traced.tracer, plan.returned), plan.kept_writes, {}});
  JointGraph result;
  result.nodes_recorded = trace.nodes().size();
  result.reads_offsets = functional.reads_offsets;
  result.joint = {std::move(functional.graph), trace.inputs().size(), plan.returned.size()};
  return result;
}

std::optional<JointGraph> make_joint_graph(Traced& traced, const Plan& plan, const Order& order,
                                           const BackwardVariant& variant) {
  count("joint_trace");
  Tracer& tracer = *traced.tracer;
  const size_t inputs = tracer.inputs().size();
  Continued continued(traced, order);
  Differentiation wanted(tracer, order, variant, Phase::Backward);
  const auto start = std::chrono::steady_clock::now();
  Tensors gradients = tracer.differentiate(wanted.sources, wanted.leaves, wanted.tangents);
  const std::chrono::duration<double> recording = std::chrono::steady_clock::now() - start;
  tracer.settle_captures();
  if (tracer.inputs().size() > inputs) return std::nullopt;

  JointGraph result;
  result.record_seconds = recording.count();
  result.nodes_recorded = tracer.graph().nodes().size();
  FunctionalGraph functional = functionalize_behind(traced, plan, gradients, 0);
  result.reads_offsets = functional.reads_offsets;
  result.eager_saved_bytes =
      bytes_read_by_backward(tracer.graph(), traced.forward_nodes, values_of(tracer, plan.returned));
  result.joint = {std::move(functional.graph), inputs + order.tangents.size(), plan.returned.size()};
  const auto& outputs = result.joint.graph.outputs();
  result.gradients.assign(outputs.begin() + int64_t(plan.returned.size()), outputs.end());
  return result;
}

std::optional<NextOrder> make_next_order(Traced& traced, const Plan& plan, const Order& order,
                                         const BackwardVariant& variant) {
  count("joint_trace");
  Tracer& tracer = *traced.tracer;
  const size_t inputs = tracer.inputs().size();
  Continued continued(traced, order);
  Differentiation wanted(tracer, order, variant, Phase::Forward);
  Tensors gradients = tracer.differentiate_keeping_graph(wanted.sources, wanted.leaves, wanted.tangents);
  lead_to_fakes(tracer, gradients);
  const OrderPart& part = order.parts[part_of(order.parts, variant)];
  if (part.elsewhere) end_at_border(*part.elsewhere, gradients);

  NextOrder next;
  next.tangents = wanted.arrived.size();
  next.gradients = gradients.size();
  const auto& nodes = tracer.graph().nodes();
  next.order.nodes.assign(nodes.begin() + int64_t(traced.forward_nodes), nodes.end());
  next.order.leaves.assign(order.leaves.begin() + int64_t(part.first_leaf),
                           order.leaves.begin() + int64_t(part.first_leaf + part.leaves));
  next.order.leaves.insert(next.order.leaves.end(), part.beyond.begin(), part.beyond.end());
  next.order.tangents = order.tangents;
  for (const at::Tensor& tangent : wanted.arrived) {
    next.order.tangents.push_back(tracer.value_of(tangent));
    if (tangent.requires_grad()) next.order.leaves.push_back(tangent);
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined() || !gradients[i].requires_grad()) continue;
    next.sources.push_back(i);
    next.order.sources.push_back(gradients[i]);
  }
  next.order.parts = {{0, next.order.sources.size(), 0, next.order.leaves.size(), {}, part.elsewhere}};
  if (!next.sources.empty()) {
    Differentiation again(tracer, next.order, expected_variant(next.order), Phase::Backward);
    Tensors second;
    try {
      second = tracer.differentiate(again.sources, again.leaves, again.tangents);
    } catch (const std::exception& error) {
      next.complete = false;
      if (dynamic_cast<const UnsupportedError*>(&error)) next.refusal = error.what();
      second = gradients_that_exist(tracer, again);
    }
    gradients.insert(gradients.end(), second.begin(), second.end());
  }
  tracer.settle_captures();
  if (tracer.inputs().size() > inputs) return std::nullopt;
  next.joint = {functionalize_behind(traced, plan, gradients, next.gradients).graph,
                inputs + order.tangents.size(), plan.returned.size()};
  return next;
}

}  // namespace tandem
