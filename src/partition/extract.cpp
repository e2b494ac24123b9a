#include "partition/extract.h"

#include <tandem/build.h>
#include <tandem/error.h>

#include <bit>
#include <set>
#include <sstream>
#include <unordered_map>

#include "graph/uses.h"
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

/// Small ones by what they hold, since folding makes them anew; large ones by where they lie.
uint64_t key_of_data(const at::Tensor& data) {
  constexpr size_t most_bytes = 64 * 1024;
  uint64_t key = mix(13, uint64_t(data.scalar_type()));
  for (int64_t size : data.sizes()) key = mix(key, uint64_t(size));
  if (!data.device().is_cpu() || data.nbytes() > most_bytes) return mix(key, uint64_t(reinterpret_cast<uintptr_t>(data.const_data_ptr())));
  at::Tensor plain = data.contiguous();
  return mix(key, std::hash<std::string_view>()({static_cast<const char*>(plain.const_data_ptr()), plain.nbytes()}));
}

bool is_draw(const Node& node) { return facts(node.op).random; }
bool is_effect(const Node& node) { return facts(node.op).side_effect; }

/// For every value, a number that says how it is computed; equal programs give equal numbers whatever their values are called. Two draws of random numbers
/// differ: no pass leaves one out, so they can be counted. `apart`: what the forward returned, and the caller may have written since, is another value than what
/// the forward or a backward computes again.
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
    if (is_draw(node)) key = mix(key, ++draws);
    uint64_t result = 0;
    for_each_result(node, [&](Value made) { keys[made.id] = mix(mix(key, ++result), place_among_returned(made)); });
  }
  return keys;
}

/// Where in the later graph the values of the earlier one are.
class Matched {
 public:
  Matched(const Joint& joint, const Kept& kept, bool apart)
      : joint_(joint), graph_(joint.graph), keys_(computation_keys(joint, apart)), old_keys_(computation_keys(kept.joint, apart)), maker_(makers(joint.graph)) {
    std::unordered_map<uint64_t, size_t> position;
    for (size_t i = 0; i < kept.saved.size(); ++i)
      if (size_t(kept.saved[i].id) < old_keys_.size()) position.emplace(old_keys_[kept.saved[i].id], i);
    saved_as_.assign(graph_.value_count(), -1);
    for (size_t id = 0; id < keys_.size(); ++id)
      if (auto found = position.find(keys_[id]); keys_[id] && found != position.end()) saved_as_[id] = int64_t(found->second);
    for (const Node& node : kept.joint.graph.nodes()) {
      draws_done_ += node.phase == Phase::Forward && is_draw(node);
      effects_done_ += node.phase == Phase::Forward && is_effect(node);
    }
    number_draws_and_effects();
  }

 protected:
  bool is_tangent_or_constant(Value value) const { return given_[value.id]; }
  bool was_drawn(size_t node) const { return draw_of_[node] > 0 && draw_of_[node] <= draws_done_; }
  bool had_effect(size_t node) const { return effect_of_[node] > 0 && effect_of_[node] <= effects_done_; }
  /// A draw or an effect of what follows the forward; it happens whether or not a gradient needs it.
  bool is_due(size_t node) const { return draw_of_[node] > draws_done_ || effect_of_[node] > effects_done_; }

  const Joint& joint_;
  const Graph& graph_;
  const std::vector<uint64_t> keys_, old_keys_;
  std::vector<int64_t> saved_as_;
  const std::vector<int32_t> maker_;

 private:
  void number_draws_and_effects() {
    given_.assign(graph_.value_count(), false);
    draw_of_.assign(graph_.nodes().size(), 0);
    effect_of_.assign(graph_.nodes().size(), 0);
    for (size_t i = joint_.primals; i < graph_.inputs().size(); ++i) given_[graph_.inputs()[i].id] = true;
    for (const auto& constant : graph_.constants()) given_[constant.first.id] = true;
    size_t draws = 0, effects = 0;
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      if (is_draw(graph_.nodes()[n])) draw_of_[n] = ++draws;
      if (is_effect(graph_.nodes()[n])) effect_of_[n] = ++effects;
    }
  }

  std::vector<bool> given_;
  std::vector<size_t> draw_of_, effect_of_;  ///< for each node the how manieth draw or effect it is, from 1
  size_t draws_done_ = 0, effects_done_ = 0;
};

class Extractor : Matched {
 public:
  Extractor(const Joint& joint, const Kept& kept, bool apart) : Matched(joint, kept, apart), known_(graph_.value_count()), needed_(graph_.nodes().size()) {}

  Extracted run(size_t tangents, size_t gradients, const std::vector<Value>& also) {
    std::vector<Value> outputs(graph_.outputs().begin() + int64_t(joint_.forward_outputs), graph_.outputs().end());
    for (Value output : outputs)
      if (output) need(output);
    for (Value value : also) need(value);
    need_what_is_due();
    const bool alone = tangents == 0 && gradients == 0;
    Extracted result;
    Graph& graph = result.joint.graph = graph_;
    result.saved = positions_;
    std::vector<Value> inputs = inputs_;
    inputs.insert(inputs.end(), graph_.inputs().begin() + int64_t(joint_.primals), graph_.inputs().end());
    graph.set_inputs(inputs);
    graph.nodes().clear();
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      if (needed_[n]) add_node(graph, n, alone);
    give_own_memory(graph, outputs, gradients);
    graph.set_outputs(std::move(outputs));
    graph = without_unread_constants(std::move(graph));
    result.joint.primals = inputs_.size() + tangents;
    result.joint.forward_outputs = gradients;
    return result;
  }

 private:
  void need_what_is_due() {
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      if (!is_due(n)) continue;
      needed_[n] = true;
      for_each_argument(graph_.nodes()[n], [&](Value argument) { need(argument); });
    }
  }

  void need(Value first) {
    std::vector<Value> waiting{first};
    while (!waiting.empty()) {
      Value value = waiting.back();
      waiting.pop_back();
      if (known_[value.id] || is_tangent_or_constant(value)) continue;
      known_[value.id] = true;
      if (saved_as_[value.id] >= 0) {
        inputs_.push_back(value);
        positions_.push_back(size_t(saved_as_[value.id]));
        continue;
      }
      const int32_t n = maker_[value.id];
      if (n == no_node)
        throw UnsupportedError("this backward needs input " + graph_.name(value) + ", which the forward did not keep; take this gradient inside the compiled function");
      const Node& node = graph_.nodes()[size_t(n)];
      if (was_drawn(size_t(n)))
        throw UnsupportedError("this backward would have to draw the random numbers of " + full_name(node.op) + " again, which the forward did not keep; take this "
                               "gradient inside the compiled function");
      needed_[size_t(n)] = true;
      for_each_argument(node, [&](Value argument) { waiting.push_back(argument); });
    }
  }

  /// A node of which one result was kept may run again for the sake of another.
  void add_node(Graph& graph, size_t n, bool alone) const {
    Node node = graph_.nodes()[n];
    if (alone) node.phase = Phase::Backward;
    auto apart = [&](Value made) {
      if (saved_as_[made.id] < 0) return made;
      TensorMeta meta = graph.meta(made);
      return graph.add_value(std::move(meta));
    };
    for (Operand& result : node.results) map_values(result, apart);
    for (auto& [before, after] : node.writes)
      if (after != before) after = apart(after);
    graph.add_node(std::move(node));
  }

  /// Whoever gets a gradient with a history of its own may write it.
  static void give_own_memory(Graph& graph, std::vector<Value>& outputs, size_t count) {
    std::unordered_set<int32_t> taken = storages_of_inputs(graph);
    taken.merge(storages_of_constants(graph));
    for (size_t i = 0; i < count; ++i) {
      if (!outputs[i] || taken.insert(graph.meta(outputs[i]).storage).second) continue;
      outputs[i] = std::get<Value>(append_call(graph, find_op("aten::clone"), {outputs[i]}, Phase::Forward).results[0]);
    }
  }

  std::vector<bool> known_, needed_;
  std::vector<Value> inputs_;
  std::vector<size_t> positions_;
};

/// Goes through a graph that follows a forward and sees what it reads of it in vain.
class Search : Matched {
 public:
  Search(const Joint& joint, const Kept& kept) : Matched(joint, kept, /*apart=*/false) {
    auto remember = [&](Value v) { forward_.emplace(old_keys_[v.id], v); };
    for (size_t i = 0; i < kept.joint.primals; ++i) remember(kept.joint.graph.inputs()[i]);
    for (const Node& node : kept.joint.graph.nodes())
      if (node.phase == Phase::Forward) for_each_result(node, remember);
  }

  std::vector<Value> run() {
    std::vector<bool> available(graph_.value_count());
    for (size_t id = 0; id < available.size(); ++id) available[id] = saved_as_[id] >= 0 || is_tangent_or_constant(Value{int32_t(id)});
    std::set<Value> missing;
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (had_effect(n)) continue;
      bool of_forward = false, runs = !was_drawn(n);
      for_each_result(node, [&](Value made) { of_forward = of_forward || forward_.contains(keys_[made.id]); });
      for_each_argument(node, [&](Value v) {
        if (available[v.id]) return;
        runs = false;
        if (auto found = forward_.find(keys_[v.id]); !of_forward && found != forward_.end()) missing.insert(found->second);
      });
      if (runs || !of_forward) for_each_result(node, [&](Value made) { available[made.id] = true; });
    }
    return {missing.begin(), missing.end()};
  }

 private:
  std::unordered_map<uint64_t, Value> forward_;   ///< values of the forward that ran, by how they are computed
};

}  // namespace

Extracted extract_next_order(const Joint& joint, const Kept& kept, size_t tangents, size_t gradients, const std::vector<Value>& also) {
  try {
    return Extractor(joint, kept, /*apart=*/true).run(tangents, gradients, also);
  } catch (const UnsupportedError&) {
    return Extractor(joint, kept, /*apart=*/false).run(tangents, gradients, also);
  }
}

Extracted extract_backward(const Joint& joint, const Kept& kept) { return extract_next_order(joint, kept, 0, 0); }

std::vector<Value> missing_values(const Joint& joint, const Kept& kept) { return Search(joint, kept).run(); }

}  // namespace tandem
