#include "partition/extract.h"

#include <tandem/build.h>
#include <tandem/error.h>

#include <set>

#include "graph/draws.h"
#include "graph/geometry.h"
#include "graph/uses.h"
#include "ops/facts.h"
#include "partition/matched.h"
#include "partition/own_memory.h"

namespace tandem {
namespace {

class Extractor : Matched {
 public:
  Extractor(const Joint& joint, const Kept& kept, bool apart)
      : Matched(joint, kept, apart),
        known_(graph_.value_count()),
        known_inside_(graph_.value_count()),
        needed_(graph_.nodes().size()) {}

  Extracted run(size_t tangents, size_t gradients, const std::vector<Value>& also) {
    std::vector<Value> outputs(graph_.outputs().begin() + int64_t(joint_.forward_outputs),
                               graph_.outputs().end());
    for (Value output : outputs)
      if (output) need(output);
    for (Value value : also) need(value);
    need_what_is_due();
    const bool alone = tangents == 0 && gradients == 0;
    Extracted result;
    Graph& graph = result.joint.graph = graph_;
    take_states(graph);
    name_twice_what_is_taken_twice(graph);
    result.saved = positions_;
    std::vector<Value> inputs = inputs_;
    inputs.insert(inputs.end(), graph_.inputs().begin() + int64_t(joint_.primals), graph_.inputs().end());
    graph.set_inputs(inputs);
    graph.nodes().clear();
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      if (needed_[n]) add_node(graph, n, alone);
    for (Value& output : outputs) output = as_kept(output);
    give_own_memory(graph, outputs, gradients);
    graph.set_outputs(std::move(outputs));
    graph = with_own_memory(without_unread_constants(std::move(graph)));
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
    std::vector<std::pair<Value, bool>> waiting{{first, false}};  // and whether it is read by a rerun
    while (!waiting.empty()) {
      const auto [value, reads_again] = waiting.back();
      waiting.pop_back();
      const bool inside = reads_again && has_own(value);
      std::vector<bool>& known = inside ? known_inside_ : known_;
      if (known[size_t(value.id)] || is_tangent_or_constant(value)) continue;
      known[size_t(value.id)] = true;
      if (const int64_t place = (inside ? own_as_ : saved_as_)[size_t(value.id)]; place >= 0) {
        inputs_.push_back(value);
        positions_.push_back(size_t(place));
        continue;
      }
      const size_t n = maker_that_can_run(value);
      needed_[n] = true;
      for_each_argument(graph_.nodes()[n], [&](Value read) { waiting.emplace_back(read, has_run(n)); });
    }
  }

  size_t maker_that_can_run(Value value) const {
    const int32_t n = maker_[size_t(value.id)];
    if (n == no_node)
      throw UnsupportedError("this backward needs input " + graph_.name(value) +
                             ", which the forward did "
                             "not keep; take this gradient inside the compiled function");
    if ((was_drawn(size_t(n)) && !kept_state(size_t(n))) || was_state(size_t(n)))
      throw UnsupportedError("this backward would have to draw the random numbers of " +
                             full_name(graph_.nodes()[size_t(n)].op) +
                             " again, which the forward did not "
                             "keep; take this gradient inside the compiled function");
    return size_t(n);
  }

  /// The joint's name is for what reruns read; the order above knows the other by where it came from.
  void name_twice_what_is_taken_twice(Graph& graph) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Value value = inputs_[i];
      const size_t id = size_t(value.id);
      const bool is_read_otherwise = id < known_inside_.size() && known_inside_[id];
      if (!is_read_otherwise || int64_t(positions_[i]) != saved_as_[id]) continue;
      TensorMeta meta = graph.meta(value);
      inputs_[i] = as_kept_[value] = graph.add_value(std::move(meta));
    }
  }

  Value as_kept(Value value) const {
    const auto found = as_kept_.find(value);
    return found == as_kept_.end() ? value : found->second;
  }

  /// A node of which one result was kept may run again for the sake of another.
  void add_node(Graph& graph, size_t n, bool alone) const {
    Node node = graph_.nodes()[n];
    if (alone) node.phase = Phase::Backward;
    if (was_drawn(n)) node.state = states_.at(n);
    if (!has_run(n)) map_arguments(node, [&](Value read) { return as_kept(read); });
    auto apart = [&](Value made) {
      const size_t id = size_t(made.id);
      if (saved_as_[id] < 0 || (known_inside_[id] && own_as_[id] < 0)) return made;
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
      outputs[i] = copy_of(graph, outputs[i]);
    }
  }

  /// Laid out in memory as the value is: what is computed from a gradient may be rounded by that.
  static Value copy_of(Graph& graph, Value value) {
    auto call = [&](const char* op, std::vector<Operand> arguments) {
      return std::get<Value>(append_call(graph, find_op(op), std::move(arguments)).results[0]);
    };
    const TensorMeta meta = graph.meta(value);
    const c10::IValue sizes(c10::IntArrayRef(meta.sizes)), strides(c10::IntArrayRef(meta.strides));
    if (is_dense(meta)) return call("aten::clone", {value});
    if (!is_surely_injective(meta)) {
      const auto [first, last] = byte_range(placement_of(meta));
      const c10::IValue span(std::vector<int64_t>{(last - first) / int64_t(c10::elementSize(meta.dtype))});
      const Value all = call("aten::as_strided", {value, span, c10::IValue(std::vector<int64_t>{1})});
      return call("aten::as_strided", {call("aten::clone", {all}), sizes, strides});
    }
    const Value memory = call("aten::empty_strided", {sizes, strides, c10::IValue(meta.dtype), c10::IValue(),
                                                      c10::IValue(meta.device)});
    const Value copied = graph.add_value(graph.meta(memory));
    graph.add_node(Node{find_op("aten::copy_"),
                        {memory, value, c10::IValue(false)},
                        {Value{}},
                        {{memory, copied}},
                        Phase::Forward});
    return copied;
  }

  std::vector<bool> known_;
  std::vector<bool> known_inside_;  ///< that reruns read, where it is not what others do
  std::vector<bool> needed_;
  std::vector<Value> inputs_;
  std::vector<size_t> positions_;
  std::map<Value, Value> as_kept_;            ///< what lies in the caller's memory, where reruns read another
  std::unordered_map<size_t, Value> states_;  ///< that nodes which draw again begin in
};

/// Goes through a graph that follows a forward and sees what it reads of it in vain.
class Search : Matched {
 public:
  Search(const Joint& joint, const Kept& kept) : Matched(joint, kept, /*apart=*/false) {}

  std::vector<Value> run() {
    std::vector<bool> available(graph_.value_count());
    for (size_t id = 0; id < available.size(); ++id)
      available[id] = saved_as_[id] >= 0 || is_tangent_or_constant(Value{int32_t(id)});
    std::set<Value> missing;
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (had_effect(n) || was_state(n)) continue;
      bool runs = !was_drawn(n) || kept_state(n).has_value();
      for_each_argument(node, [&](Value v) {
        if (available[v.id]) return;
        runs = false;
        const auto found = ran_.find(keys_[v.id]);
        if (!has_run(n) && found != ran_.end()) missing.insert(found->second);
      });
      if (runs || !has_run(n)) for_each_result(node, [&](Value made) { available[made.id] = true; });
    }
    return {missing.begin(), missing.end()};
  }
};

}  // namespace

Extracted extract_next_order(const Joint& joint, const Kept& kept, size_t tangents, size_t gradients,
                             const std::vector<Value>& also) {
  try {
    return Extractor(joint, kept, /*apart=*/true).run(tangents, gradients, also);
  } catch (const UnsupportedError&) {
    return Extractor(joint, kept, /*apart=*/false).run(tangents, gradients, also);
  }
}

Extracted extract_backward(const Joint& joint, const Kept& kept) {
  return extract_next_order(joint, kept, 0, 0);
}

std::vector<Value> missing_values(const Joint& joint, const Kept& kept) { return Search(joint, kept).run(); }

}  // namespace tandem
