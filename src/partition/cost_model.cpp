#include "partition/cost_model.h"

#include <algorithm>
#include <cmath>

#include "ops/facts.h"

namespace tandem {
namespace {

/// What a device does in a second. Only ratios matter to a partitioner.
struct Rates {
  double call_seconds, bytes, elements, flops, narrow_flops;
};
constexpr Rates cpu{2e-6, 10e9, 2e9, 60e9, 60e9};
constexpr Rates accelerator{4e-6, 2.5e12, 5e12, 40e12, 400e12};

struct Traffic {
  double bytes = 0, made = 0, read = 0;  ///< made and read: elements of the largest
  c10::Device device = c10::kCPU;
  bool narrow = false;  ///< of 16 bits
};

Traffic traffic_of(const Graph& graph, const Node& node) {
  Traffic found;
  auto add = [&](Value v, double& largest) {
    const TensorMeta& meta = graph.meta(v);
    const double elements = double(meta.numel()), size = double(c10::elementSize(meta.dtype));
    found.bytes += elements * size;
    largest = std::max(largest, elements);
    if (!meta.device.is_cpu()) found.device = meta.device;
    found.narrow = found.narrow || (size == 2 && at::isFloatingType(meta.dtype));
  };
  for_each_argument(node, [&](Value v) { add(v, found.read); });
  for (const Operand& result : node.results) for_each_value(result, [&](Value v) { add(v, found.made); });
  return found;
}

std::vector<Value> tensors_of(const Node& node) {
  std::vector<Value> found;
  for (const Operand& argument : node.arguments)
    for_each_value(argument, [&](Value v) { found.push_back(v); });
  return found;
}

bool has_in_name(const Node& node, std::string_view word) {
  return node.op.operator_name().name.find(word) != std::string::npos;
}

}  // namespace

double flops(const Graph& graph, const Node& node) {
  const std::vector<Value> read = tensors_of(node);
  const Value* made = node.results.empty() ? nullptr : std::get_if<Value>(&node.results[0]);
  if (read.size() < 2 || !made || !*made) return 0;
  auto elements = [&](Value v) { return double(graph.meta(v).numel()); };
  const double results = elements(*made);
  if (has_in_name(node, "attention")) {
    const auto& keys = graph.meta(read[1]).sizes;
    return 4 * elements(read[0]) * (keys.size() >= 2 ? double(keys[keys.size() - 2]) : 1);
  }
  if (has_in_name(node, "convolution")) {
    const auto& weight = graph.meta(read[1]).sizes;
    return weight.empty() ? 0 : 2 * results * elements(read[1]) / double(std::max<int64_t>(1, weight[0]));
  }
  // Of [m, k] by [k, n] the three sizes multiply to the square of m k n; a batch counts once too often.
  const size_t last = read.size();
  const auto& sizes = graph.meta(*made).sizes;
  const double batch = sizes.size() == 3 ? std::max<double>(1, double(sizes[0])) : 1;
  return 2 * std::sqrt(elements(read[last - 2]) * elements(read[last - 1]) * results / batch);
}

double typical_seconds(const Graph& graph, const Node& node) {
  const OpFacts& op = facts(node.op);
  if (op.view) return 0;
  const Traffic traffic = traffic_of(graph, node);
  const Rates& rates = traffic.device.is_cpu() ? cpu : accelerator;
  double computing = op.cost * std::max(traffic.made, traffic.read) / rates.elements;
  if (op.kind == Kind::Matmul)
    computing = flops(graph, node) / (traffic.narrow ? rates.narrow_flops : rates.flops);
  return rates.call_seconds + std::max(traffic.bytes / rates.bytes, computing);
}

CostModel cost_model_of(const PartitionContext& context) {
  return context.cost_model ? context.cost_model : CostModel(&typical_seconds, "typical", "1");
}

}  // namespace tandem
