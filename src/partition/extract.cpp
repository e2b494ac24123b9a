#include "partition/extract.h"

#include <tandem/build.h>
#include <tandem/error.h>

#include <map>
#include <set>
#include <unordered_map>

#include "graph/draws.h"
#include "graph/uses.h"
#include "ops/facts.h"
#include "ops/generator_state.h"
#include "partition/computation_keys.h"

namespace tandem {
namespace {

bool is_effect(const Node& node) { return facts(node.op).side_effect; }

/// What a node makes a copy of, or none.
Value copied_by(const Node& node) { return node.op.operator_name().name == "aten::clone" ? std::get<Value>(node.arguments[0]) : Value{}; }

size_t draws_of_forward(const Graph& graph) {
  return size_t(std::count_if(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) { return node.phase == Phase::Forward && draws_live(node); }));
}

/// Which of the saved values are states of the generator, by their places, and which draw of the joint began there, from 1. One
/// that the forward read is told by how many draws come behind it; one that it was given by what the forward below knows of it.
std::map<size_t, size_t> states_among_saved(const Kept& kept) {
  std::map<Value, size_t> draw_of;
  size_t draw = draws_of_forward(kept.joint.graph) + 1;
  for (auto node = kept.forward.nodes().rbegin(); node != kept.forward.nodes().rend(); ++node) {
    draw -= draws_live(*node);
    if (reads_generator(node->op)) draw_of[std::get<Value>(node->results[0])] = draw;
  }
  if (kept.below)
    for (const auto& [place, drawn] : states_among_saved(*kept.below))
      for (size_t i = 0; i < kept.taken.size(); ++i)
        if (kept.taken[i] == place) draw_of[kept.forward.inputs()[i]] = drawn;
  for (const Node& node : kept.forward.nodes())
    if (const Value original = copied_by(node); original && draw_of.contains(original)) draw_of[std::get<Value>(node.results[0])] = draw_of[original];
  std::map<size_t, size_t> found;
  for (size_t i = 0; i < kept.saved.size(); ++i)
    if (auto state = draw_of.find(kept.saved[i]); state != draw_of.end()) found.emplace(i, state->second);
  return found;
}

/// Where in the later graph the values of the earlier one are.
class Matched {
 public:
  Matched(const Joint& joint, const Kept& kept, bool apart)
      : joint_(joint), graph_(joint.graph), keys_(computation_keys(joint, apart)), old_keys_(computation_keys(kept.joint, apart)), maker_(makers(joint.graph)) {
    std::unordered_map<uint64_t, size_t> position;
    for (size_t i = 0; i < kept.saved.size(); ++i)
      if (Value original = original_of(kept, kept.saved[i])) position.emplace(old_keys_[original.id], i);
    saved_as_.assign(graph_.value_count(), -1);
    for (size_t id = 0; id < keys_.size(); ++id)
      if (auto found = position.find(keys_[id]); keys_[id] && found != position.end()) saved_as_[id] = int64_t(found->second);
    draws_done_ = draws_of_forward(kept.joint.graph);
    for (const Node& node : kept.joint.graph.nodes()) effects_done_ += node.phase == Phase::Forward && is_effect(node);
    for (const auto& [place, draw] : states_among_saved(kept)) kept_states_.emplace(draw, place);
    number_draws_and_effects();
  }

 protected:
  bool is_tangent_or_constant(Value value) const { return given_[value.id]; }
  bool was_drawn(size_t node) const { return draw_of_[node] > 0 && draw_of_[node] <= draws_done_; }
  /// Whether a node reads the state that a draw of the forward began in.
  bool was_state(size_t node) const { return reads_generator(graph_.nodes()[node].op) && draws_before_[node] < draws_done_; }
  /// Which saved value is the state that a draw of the forward began in, or none.
  std::optional<size_t> kept_state(size_t node) const {
    const auto found = was_drawn(node) ? kept_states_.find(draw_of_[node]) : kept_states_.end();
    return found == kept_states_.end() ? std::nullopt : std::optional(found->second);
  }
  bool had_effect(size_t node) const { return effect_of_[node] > 0 && effect_of_[node] <= effects_done_; }
  /// A draw or an effect of what follows the forward; it happens whether or not a gradient needs it.
  bool is_due(size_t node) const { return draw_of_[node] > draws_done_ || effect_of_[node] > effects_done_; }

  const Joint& joint_;
  const Graph& graph_;
  const std::vector<uint64_t> keys_, old_keys_;
  std::vector<int64_t> saved_as_;
  const std::vector<int32_t> maker_;

 private:
  /// What a saved value is of the joint: itself, or what it is a copy of.
  Value original_of(const Kept& kept, Value saved) const {
    if (size_t(saved.id) < old_keys_.size()) return saved;
    const Node* maker = maker_of(kept.forward, saved);
    const Value original = maker ? copied_by(*maker) : Value{};
    return original && size_t(original.id) < old_keys_.size() ? original : Value{};
  }

  void number_draws_and_effects() {
    given_.assign(graph_.value_count(), false);
    draw_of_.assign(graph_.nodes().size(), 0);
    effect_of_.assign(graph_.nodes().size(), 0);
    for (size_t i = joint_.primals; i < graph_.inputs().size(); ++i) given_[graph_.inputs()[i].id] = true;
    for (const auto& constant : graph_.constants()) given_[constant.first.id] = true;
    draws_before_.assign(graph_.nodes().size(), 0);
    size_t draws = 0, effects = 0;
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      draws_before_[n] = draws;
      if (draws_live(graph_.nodes()[n])) draw_of_[n] = ++draws;
      if (is_effect(graph_.nodes()[n])) effect_of_[n] = ++effects;
    }
  }

  std::vector<bool> given_;
  std::vector<size_t> draws_before_;
  std::vector<size_t> draw_of_, effect_of_;  ///< for each node the how manieth draw or effect it is, from 1
  size_t draws_done_ = 0, effects_done_ = 0;
  std::unordered_map<size_t, size_t> kept_states_;   ///< the place among the saved values, by the draw
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
    take_states(graph);
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
  void take_states(Graph& graph) {
    for (size_t n = 0; n < needed_.size(); ++n) {
      if (!needed_[n] || !was_drawn(n)) continue;
      states_[n] = graph.add_value(state_meta(graph, drawn_on(graph, graph_.nodes()[n])));
      inputs_.push_back(states_[n]);
      positions_.push_back(*kept_state(n));
    }
  }

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
      if ((was_drawn(size_t(n)) && !kept_state(size_t(n))) || was_state(size_t(n)))
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
    if (was_drawn(n)) node.state = states_.at(n);
    auto apart = [&](Value made) {
      if (saved_as_[made.id] < 0) return made;
      TensorMeta meta = graph.meta(made);
      return graph.add_value(std::move(meta));
    };
    for (Operand& result : node.results) map_values(result, apart);
    for (auto& [before, after] : node.writes)
      if (after != before) after = apart(after);
    if (node.next_state) node.next_state = apart(node.next_state);
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
  std::unordered_map<size_t, Value> states_;   ///< that nodes which draw again begin in
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
      if (had_effect(n) || was_state(n)) continue;
      bool of_forward = false, runs = !was_drawn(n) || kept_state(n).has_value();
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
