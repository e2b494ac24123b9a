#include "partition/cost_model.h"

#include <algorithm>
#include <cmath>

#include "ops/facts.h"

namespace tandem {
namespace {

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

double seconds_of(const Graph& graph, const Node& node, const DeviceRates& known) {
  const OpFacts& op = facts(node.op);
  if (op.view) return 0;
  const Traffic traffic = traffic_of(graph, node);
  const auto own =
      std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.first == traffic.device; });
  const Rates& rates = own != known.end() ? own->second : built_in_rates(traffic.device);
  double computing = op.cost * std::max(traffic.made, traffic.read) / rates.elements;
  if (op.kind == Kind::Matmul)
    computing = flops(graph, node) / (traffic.narrow ? rates.narrow_flops : rates.flops);
  return rates.call_seconds + std::max(traffic.bytes / rates.bytes, computing);
}

CostModel cost_model_with(DeviceRates rates, std::string name) {
  std::string version = "1";
  for (const auto& [device, measured] : rates) version += ", " + device.str() + ": " + to_words(measured);
  return {[rates = std::move(rates)](const Graph& graph, const Node& node) {
            return seconds_of(graph, node, rates);
          },
          std::move(name), std::move(version)};
}

CostModel built_in_cost_model() { return cost_model_with({}, "built in"); }

CostModel cost_model_of(const PartitionContext& context) {
  return context.cost_model ? context.cost_model : built_in_cost_model();
}

}  // namespace tandem
