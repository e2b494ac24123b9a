#include "partition/matched.h"

#include <algorithm>

#include "graph/draws.h"
#include "graph/uses.h"
#include "ops/facts.h"
#include "ops/generator_state.h"
#include "ops/versions.h"

namespace tandem {
namespace {

bool is_effect(const Node& node) { return facts(node.op).side_effect; }

/// What a node makes a copy of, or none.
Value copied_by(const Node& node) {
  return node.op.operator_name().name == "aten::clone" ? std::get<Value>(node.arguments[0]) : Value{};
}

size_t draws_of_forward(const Graph& graph) {
  auto is_draw = [](const Node& node) { return node.phase == Phase::Forward && draws_live(node); };
  return size_t(std::count_if(graph.nodes().begin(), graph.nodes().end(), is_draw));
}

/// Which of the saved values are states of the generator, by their places, and which draw of the joint began
/// there, from 1. One that the forward read is told by how many draws come behind it; one that it was given
/// by what the forward below knows of it.
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
    if (auto original = draw_of.find(copied_by(node)); original != draw_of.end())
      draw_of[std::get<Value>(node.results[0])] = original->second;
  std::map<size_t, size_t> found;
  for (size_t i = 0; i < kept.saved.size(); ++i)
    if (auto state = draw_of.find(kept.saved[i]); state != draw_of.end()) found.emplace(i, state->second);
  return found;
}

/// By their places: values of the joint, copies of these that the forward made, and what it was given as one.
std::map<size_t, Origin> origins_of_saved(const Kept& kept, const std::vector<uint64_t>& keys,
                                          ComputationKeys& computations) {
  const std::unordered_set<int32_t> reached =
      storages_of_caller(kept.forward, kept.forward.outputs().size() - kept.saved.size());
  std::map<size_t, Origin> below;
  if (kept.below) below = origins_of_saved(*kept.below, computations.of(kept.below->joint), computations);
  auto origin = [&](Value v) -> std::optional<Origin> {
    const auto& inputs = kept.forward.inputs();
    const size_t place = size_t(std::find(inputs.begin(), inputs.end(), v) - inputs.begin());
    const auto found = place < kept.taken.size() ? below.find(kept.taken[place]) : below.end();
    if (found != below.end()) return found->second;
    if (size_t(v.id) >= keys.size()) return std::nullopt;
    return Origin{keys[size_t(v.id)], reached.contains(kept.forward.meta(v).storage)};
  };
  std::map<size_t, Origin> found;
  for (size_t i = 0; i < kept.saved.size(); ++i) {
    const Value saved = kept.saved[i];
    const Node* maker = size_t(saved.id) < keys.size() ? nullptr : maker_of(kept.forward, saved);
    const Value original = maker ? copied_by(*maker) : saved;
    if (const auto known = original ? origin(original) : std::nullopt)
      found.emplace(i, Origin{known->key, known->within_reach && !maker});
  }
  return found;
}

}  // namespace

Matched::Matched(const Joint& joint, const Kept& kept, bool apart)
    : joint_(joint),
      graph_(joint.graph),
      computations_(apart),
      keys_(computations_.of(joint)),
      maker_(makers(joint.graph)) {
  const std::vector<uint64_t> old_keys = computations_.of(kept.joint);
  std::map<size_t, Origin> origins = origins_of_saved(kept, old_keys, computations_);
  std::erase_if(origins, [&](const auto& origin) { return !kept.has(origin.first); });
  find_saved(origins);
  number_draws_and_effects(kept);
  for (const auto& [place, draw] : states_among_saved(kept))
    if (kept.has(place)) kept_states_.emplace(draw, place);
  find_what_has_run(kept, old_keys);
  find_what_is_out_of_reach();
}

bool Matched::was_state(size_t node) const {
  return reads_generator(graph_.nodes()[node].op) && draws_before_[node] < draws_done_;
}

std::optional<size_t> Matched::kept_state(size_t node) const {
  const auto found = was_drawn(node) ? kept_states_.find(draw_of_[node]) : kept_states_.end();
  return found == kept_states_.end() ? std::nullopt : std::optional(found->second);
}

bool Matched::has_own(Value value) const {
  const size_t id = size_t(value.id);
  return saved_as_[id] >= 0 && saved_as_[id] != own_as_[id] && out_of_reach_[id];
}

void Matched::find_saved(const std::map<size_t, Origin>& origins) {
  std::unordered_map<uint64_t, size_t> within_reach, out_of_reach;
  for (const auto& [place, origin] : origins)
    (origin.within_reach ? within_reach : out_of_reach).emplace(origin.key, place);
  auto place_in = [](const std::unordered_map<uint64_t, size_t>& places, uint64_t key) {
    const auto found = places.find(key);
    return key && found != places.end() ? int64_t(found->second) : -1;
  };
  for (uint64_t key : keys_) {
    const int64_t own = place_in(out_of_reach, key), of_caller = place_in(within_reach, key);
    own_as_.push_back(own);
    saved_as_.push_back(of_caller >= 0 ? of_caller : own);
  }
}

void Matched::number_draws_and_effects(const Kept& kept) {
  draws_done_ = draws_of_forward(kept.joint.graph);
  for (const Node& node : kept.joint.graph.nodes())
    effects_done_ += node.phase == Phase::Forward && is_effect(node);
  draw_of_.assign(graph_.nodes().size(), 0);
  effect_of_.assign(graph_.nodes().size(), 0);
  draws_before_.assign(graph_.nodes().size(), 0);
  size_t draws = 0, effects = 0;
  for (size_t n = 0; n < graph_.nodes().size(); ++n) {
    draws_before_[n] = draws;
    if (draws_live(graph_.nodes()[n])) draw_of_[n] = ++draws;
    if (is_effect(graph_.nodes()[n])) effect_of_[n] = ++effects;
  }
}

void Matched::find_what_has_run(const Kept& kept, const std::vector<uint64_t>& old_keys) {
  auto remember = [&](Value v) { ran_.emplace(old_keys[size_t(v.id)], v); };
  for (size_t i = 0; i < kept.joint.primals; ++i) remember(kept.joint.graph.inputs()[i]);
  for (const Node& node : kept.joint.graph.nodes())
    if (node.phase == Phase::Forward) for_each_result(node, remember);
  has_run_.assign(graph_.nodes().size(), false);
  for (size_t n = 0; n < graph_.nodes().size(); ++n)
    for_each_result(graph_.nodes()[n],
                    [&](Value made) { has_run_[n] = has_run_[n] || ran_.contains(keys_[size_t(made.id)]); });
}

void Matched::find_what_is_out_of_reach() {
  given_.assign(graph_.value_count(), false);
  for (size_t i = joint_.primals; i < graph_.inputs().size(); ++i)
    given_[size_t(graph_.inputs()[i].id)] = true;
  for (const auto& constant : graph_.constants()) given_[size_t(constant.first.id)] = true;
  out_of_reach_ = given_;
  for (size_t id = 0; id < own_as_.size(); ++id) out_of_reach_[id] = out_of_reach_[id] || own_as_[id] >= 0;
  for (size_t n = 0; n < graph_.nodes().size(); ++n) {
    const Node& node = graph_.nodes()[n];
    bool runs = has_run(n) && !had_effect(n) && !was_state(n) && !is_foreign(node.op);
    runs = runs && (!was_drawn(n) || kept_state(n));
    for_each_argument(node, [&](Value v) { runs = runs && out_of_reach_[size_t(v.id)]; });
    if (runs) for_each_result(node, [&](Value made) { out_of_reach_[size_t(made.id)] = true; });
  }
}

}  // namespace tandem
