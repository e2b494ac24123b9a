#include "partition/computation_keys.h"

#include <bit>
#include <sstream>
#include <unordered_map>

#include "graph/draws.h"
#include "ops/generator_state.h"

namespace tandem {
namespace {

uint64_t mix(uint64_t seed, uint64_t value) {
  uint64_t x = seed ^ (value + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2));
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

uint64_t key_of_constant(const c10::IValue& value) {
  std::hash<std::string> text;
  if (value.isInt()) return mix(1, uint64_t(value.toInt()));
  if (value.isBool()) return mix(2, value.toBool());
  if (value.isNone()) return 3;
  if (value.isDouble()) return mix(4, std::bit_cast<uint64_t>(value.toDouble()));
  if (value.isTensor()) return mix(5, value.toTensor().defined() ? text(value.toTensor().toString()) ^ std::hash<double>()(value.toTensor().item<double>()) : 0);
  if (value.isIntList()) {
    uint64_t key = 6;
    for (int64_t i : value.toIntVector()) key = mix(key, uint64_t(i));
    return key;
  }
  if (value.isGenerator()) return 7;
  std::ostringstream out;
  out << value;
  return mix(8, text(out.str()));
}

/// Small ones by what they hold, since folding makes them anew; large ones by where they lie.
uint64_t key_of_data(const at::Tensor& data) {
  constexpr size_t most_bytes = 64 * 1024;
  uint64_t key = mix(13, uint64_t(data.scalar_type()));
  for (int64_t size : data.sizes()) key = mix(key, uint64_t(size));
  if (!data.device().is_cpu() || data.nbytes() > most_bytes) return mix(key, uint64_t(reinterpret_cast<uintptr_t>(data.const_data_ptr())));
  at::Tensor plain = data.contiguous();
  return mix(key, std::hash<std::string_view>()({static_cast<const char*>(plain.const_data_ptr()), plain.nbytes()}));
}

}  // namespace

std::vector<uint64_t> computation_keys(const Joint& joint, bool apart) {
  const Graph& graph = joint.graph;
  std::vector<uint64_t> keys(graph.value_count(), 0);
  std::unordered_map<int32_t, uint64_t> returned;   // by storage
  for (size_t i = 0; i < joint.forward_outputs && apart; ++i)
    if (Value output = graph.outputs()[i]) returned.emplace(graph.meta(output).storage, i + 1);
  auto place_among_returned = [&](Value value) {
    auto found = returned.find(graph.meta(value).storage);
    return found == returned.end() ? 0 : found->second;
  };
  for (size_t i = 0; i < graph.inputs().size(); ++i) keys[graph.inputs()[i].id] = mix(11, i);
  for (const auto& [value, data] : graph.constants()) keys[value.id] = key_of_data(data);
  uint64_t draws = 0;
  for (const Node& node : graph.nodes()) {
    uint64_t key = std::hash<c10::OperatorName>()(node.op.operator_name());
    if (apart && node.phase == Phase::Backward) key = mix(key, 19);
    for (const Operand& argument : node.arguments) {
      auto read = [&](Value v) { key = mix(key, v ? keys[v.id] : 17); };
      if (auto* constant = std::get_if<c10::IValue>(&argument)) key = mix(key, key_of_constant(*constant));
      else if (auto* value = std::get_if<Value>(&argument)) read(*value);
      else for (Value element : std::get<std::vector<Value>>(argument)) read(element);
    }
    if (node.state) key = mix(mix(key, 23), keys[node.state.id]);
    if (draws_live(node)) key = mix(key, ++draws);
    if (reads_generator(node.op)) key = mix(key, draws);
    uint64_t result = 0;
    for_each_result(node, [&](Value made) { keys[made.id] = mix(mix(key, ++result), place_among_returned(made)); });
  }
  return keys;
}

}  // namespace tandem
