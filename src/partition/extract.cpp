#include "partition/extract.h"

#include <tandem/error.h>

#include <unordered_map>

#include "ops/facts.h"

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

/// For every value, a number that says how it is computed; equal programs give equal numbers whatever their values are called. Two draws of random numbers differ.
std::vector<uint64_t> computation_keys(const Joint& joint) {
  const Graph& graph = joint.graph;
  std::vector<uint64_t> keys(graph.value_count(), 0);
  for (size_t i = 0; i < graph.inputs().size(); ++i) keys[graph.inputs()[i].id] = mix(11, i);
  for (size_t i = 0; i < graph.constants().size(); ++i) keys[graph.constants()[i].first.id] = mix(13, i);
  uint64_t draws = 0;
  for (const Node& node : graph.nodes()) {
    uint64_t key = mix(std::hash<c10::OperatorName>()(node.op.operator_name()), uint64_t(node.phase));
    for (const Operand& argument : node.arguments) {
      if (auto* constant = std::get_if<c10::IValue>(&argument)) key = mix(key, key_of_constant(*constant));
      else for_each_value(argument, [&](Value v) { key = mix(key, keys[v.id]); });
    }
    if (facts(node.op).random || !node.writes.empty()) key = mix(key, ++draws);
    uint64_t result = 0;
    for_each_result(node, [&](Value made) { keys[made.id] = mix(key, ++result); });
  }
  return keys;
}

class Extractor {
 public:
  Extractor(const Joint& joint, const Joint& saved_in, const std::vector<Value>& saved) : joint_(joint), graph_(joint.graph) {
    std::vector<uint64_t> old_keys = computation_keys(saved_in);
    std::unordered_map<uint64_t, size_t> position;
    for (size_t i = 0; i < saved.size(); ++i) position.emplace(old_keys[saved[i].id], i);
    std::vector<uint64_t> keys = computation_keys(joint);
    saved_as_.assign(graph_.value_count(), -1);
    maker_.assign(graph_.value_count(), -1);
    for (size_t id = 0; id < keys.size(); ++id)
      if (auto found = position.find(keys[id]); keys[id] && found != position.end()) saved_as_[id] = int64_t(found->second);
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      for_each_result(graph_.nodes()[n], [&](Value made) { maker_[made.id] = int64_t(n); });
    known_.assign(graph_.value_count(), false);
    for (size_t i = joint.primals; i < graph_.inputs().size(); ++i) known_[graph_.inputs()[i].id] = true;
    for (const auto& constant : graph_.constants()) known_[constant.first.id] = true;
    needed_.assign(graph_.nodes().size(), false);
  }

  Extracted run() {
    std::vector<Value> gradients(graph_.outputs().begin() + int64_t(joint_.forward_outputs), graph_.outputs().end());
    for (Value gradient : gradients)
      if (gradient) need(gradient);
    Extracted result;
    result.backward = graph_;
    result.saved = positions_;
    std::vector<Value> inputs = inputs_;
    inputs.insert(inputs.end(), graph_.inputs().begin() + int64_t(joint_.primals), graph_.inputs().end());
    result.backward.set_inputs(std::move(inputs));
    result.backward.set_outputs(std::move(gradients));
    result.backward.nodes().clear();
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      if (needed_[n]) result.backward.add_node(graph_.nodes()[n]).phase = Phase::Backward;
    return result;
  }

 private:
  void need(Value first) {
    std::vector<Value> waiting{first};
    while (!waiting.empty()) {
      Value value = waiting.back();
      waiting.pop_back();
      if (known_[value.id]) continue;
      known_[value.id] = true;
      if (saved_as_[value.id] >= 0) {
        inputs_.push_back(value);
        positions_.push_back(size_t(saved_as_[value.id]));
        continue;
      }
      const int64_t n = maker_[value.id];
      if (n < 0)
        throw Error("this backward needs input " + graph_.name(value) + ", which the forward did not keep; call the function again with retain_graph and equal gradients");
      const Node& node = graph_.nodes()[size_t(n)];
      if (node.phase == Phase::Forward && facts(node.op).random)
        throw Error("this backward would have to draw the random numbers of " + full_name(node.op) + " again, which the forward did not keep");
      needed_[size_t(n)] = true;
      for_each_result(node, [&](Value made) { known_[made.id] = true; });
      for_each_argument(node, [&](Value argument) { waiting.push_back(argument); });
    }
  }

  const Joint& joint_;
  const Graph& graph_;
  std::vector<int64_t> saved_as_, maker_;
  std::vector<bool> known_, needed_;
  std::vector<Value> inputs_;
  std::vector<size_t> positions_;
};

}  // namespace

Extracted extract_backward(const Joint& joint, const Joint& saved_in, const std::vector<Value>& saved) { return Extractor(joint, saved_in, saved).run(); }

}  // namespace tandem
