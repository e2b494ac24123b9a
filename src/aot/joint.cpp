#include "aot/joint.h"

#include <chrono>
#include <set>

#include "aot/functionalize.h"
#include "base/counters.h"

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
  if (source.is_non_overlapping_and_dense()) {
    meta.strides.assign(source.strides().begin(), source.strides().end());
  } else {
    meta.strides.resize(meta.sizes.size());
    int64_t stride = 1;
    for (size_t d = meta.sizes.size(); d-- > 0;) {
      meta.strides[d] = stride;
      stride *= std::max<int64_t>(meta.sizes[d], 1);
    }
  }
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

}  // namespace

BackwardVariant expected_variant(const Traced&, const Plan& plan) {
  BackwardVariant variant;
  for (const at::Tensor& source : plan.tangent_sources) variant.tangents.push_back(expected_tangent(source));
  variant.wanted.assign(plan.gradient_inputs.size(), true);
  return variant;
}

JointGraph make_inference_graph(const Traced& traced, const Plan& plan) {
  const Graph& trace = traced.tracer->graph();
  FunctionalGraph functional = functionalize({trace, traced.forward_nodes, values_of(*traced.tracer, plan.returned), plan.kept_writes, {}});
  JointGraph result;
  result.nodes_recorded = trace.nodes().size();
  result.reads_offsets = functional.reads_offsets;
  result.joint = {std::move(functional.graph), trace.inputs().size(), plan.returned.size()};
  return result;
}

std::optional<JointGraph> make_joint_graph(Traced& traced, const Plan& plan, const BackwardVariant& variant) {
  count("joint_trace");
  Tracer& tracer = *traced.tracer;
  const size_t primals = tracer.graph().inputs().size();
  struct Restore {
    Tracer& tracer;
    size_t nodes;
    ~Restore() { tracer.truncate(nodes); }
  } restore{tracer, traced.forward_nodes};

  Tensors sources, tangents, inputs;
  for (size_t i = 0; i < variant.tangents.size(); ++i) {
    if (!variant.tangents[i]) continue;
    sources.push_back(plan.tangent_sources[i]);
    tangents.push_back(tracer.add_tangent(*variant.tangents[i]));
  }
  for (size_t i = 0; i < plan.gradient_inputs.size(); ++i)
    if (variant.wanted[i]) inputs.push_back(tracer.inputs()[plan.gradient_inputs[i]].leaf);
  const auto start = std::chrono::steady_clock::now();
  Tensors gradients = tracer.differentiate(sources, inputs, tangents);
  const std::chrono::duration<double> recording = std::chrono::steady_clock::now() - start;
  tracer.settle_captures();
  if (tracer.inputs().size() > primals) return std::nullopt;

  JointGraph result;
  result.record_seconds = recording.count();
  result.nodes_recorded = tracer.graph().nodes().size();
  FunctionalGraph functional =
      functionalize({tracer.graph(), traced.forward_nodes, values_of(tracer, plan.returned), plan.kept_writes, values_of(tracer, gradients)});
  result.reads_offsets = functional.reads_offsets;
  result.eager_saved_bytes = bytes_read_by_backward(tracer.graph(), traced.forward_nodes, values_of(tracer, plan.returned));
  result.joint = {std::move(functional.graph), primals, plan.returned.size()};
  const auto& outputs = result.joint.graph.outputs();
  result.gradients.assign(outputs.begin() + int64_t(plan.returned.size()), outputs.end());
  return result;
}

}  // namespace tandem
