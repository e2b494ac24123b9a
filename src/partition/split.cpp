#include "partition/split.h"

#include <tandem/build.h>
#include <tandem/error.h>
#include <tandem/passes.h>

#include <algorithm>
#include <unordered_map>

#include "graph/uses.h"
#include "partition/own_memory.h"

namespace tandem {

std::vector<Value> joined(std::vector<Value> values, const std::vector<Value>& more) {
  values.insert(values.end(), more.begin(), more.end());
  return values;
}

namespace {

class Splitter {
 public:
  Splitter(const Joint& joint, const PartitionContext& context, const Recomputation& can,
           const std::vector<bool>& chosen)
      : joint_(joint),
        graph_(joint.graph),
        can_(can),
        chosen_(chosen),
        of_forward_(graph_.value_count()),
        is_primal_(graph_.value_count()),
        saved_(graph_.value_count()),
        met_(graph_.value_count()),
        copied_(graph_.value_count()) {
    for (size_t i = 0; i < joint.primals; ++i)
      of_forward_[size_t(graph_.inputs()[i].id)] = is_primal_[size_t(graph_.inputs()[i].id)] = true;
    for (const Node& node : graph_.nodes())
      if (node.phase == Phase::Forward)
        for_each_result(node, [&](Value v) { of_forward_[size_t(v.id)] = true; });
    for (Value v : context.must_save) saved_[size_t(v.id)] = true;
  }

  Partition run() {
    const auto &inputs = graph_.inputs(), &outputs = graph_.outputs();
    const std::vector<Value> primals(inputs.begin(), inputs.begin() + int64_t(joint_.primals)),
        tangents(inputs.begin() + int64_t(joint_.primals), inputs.end());
    const std::vector<Value> results(outputs.begin(), outputs.begin() + int64_t(joint_.forward_outputs)),
        gradients(outputs.begin() + int64_t(joint_.forward_outputs), outputs.end());
    Partition halves;
    // With all inputs at first, so that a write of the backward to a primal is seen as one.
    halves.backward = half_of(graph_, Phase::Backward, inputs, gradients);
    need_what_is_read_by(halves.backward);
    const std::vector<Value> saved = in_order_of_joint();
    halves.forward = half_of(graph_, Phase::Forward, primals, joined(results, saved));
    halves.saved = copy_primals(halves);
    halves.saved.insert(halves.saved.end(), saved.begin(), saved.end());
    halves.forward.set_outputs(joined(results, halves.saved));
    add_what_runs_again(halves.backward);
    halves.backward.set_inputs(joined(halves.saved, tangents));
    halves.backward = with_own_memory(std::move(halves.backward));
    return halves;
  }

 private:
  void need_what_is_read_by(const Graph& backward) {
    for (const Node& node : backward.nodes()) for_each_argument(node, [&](Value v) { need(v); });
    for (Value v : backward.outputs())
      if (v) need(v);
  }

  void need(Value v) {
    if (!is_run_again(v)) return;
    if (is_to_be_saved(v))
      saved_[size_t(v.id)] = true;
    else
      run_again(v);
  }

  void run_again(Value first) {
    std::vector<Value> waiting{first};
    while (!waiting.empty()) {
      const Value v = waiting.back();
      waiting.pop_back();
      if (met_[size_t(v.id)]) continue;
      met_[size_t(v.id)] = true;
      can_.for_each_argument_again(v, [&](Value argument) {
        if (need_inside(argument)) waiting.push_back(argument);
      });
    }
  }

  /// Whether what a node reads that runs again is computed again too.
  bool need_inside(Value v) {
    const size_t id = size_t(v.id);
    if (is_primal_[id])
      (can_.is_read_as_it_is(v) ? saved_ : copied_)[id] = true;
    else if (of_forward_[id] && !can_.is_seen_by_caller(v) && is_to_be_saved(v))
      saved_[id] = true;
    return is_run_again_inside(v);
  }

  /// Whether the backward computes a value again that a node of its own reads.
  bool is_run_again(Value v) const { return of_forward_[size_t(v.id)] && !saved_[size_t(v.id)]; }

  /// The same for one that is read by a node which runs again. Nothing is taken from memory of the caller's
  /// there: he may write it before a backward that reads nothing of it in eager.
  bool is_run_again_inside(Value v) const {
    const size_t id = size_t(v.id);
    return of_forward_[id] && !is_primal_[id] && (!saved_[id] || can_.is_seen_by_caller(v));
  }

  /// What eager's backward reads of memory that the caller has is read there: his writes to it are found out.
  bool is_to_be_saved(Value v) const {
    return !can_.may_recompute(v) || can_.is_seen_by_caller(v) || (chosen_[size_t(v.id)] && can_.may_save(v));
  }

  /// Copies are the first thing that the forward makes. To the backward they are the memory that views of the
  /// primals share.
  std::vector<Value> copy_primals(Partition& halves) {
    static const c10::OperatorHandle clone = find_op("aten::clone");
    std::vector<Node> copies;
    std::vector<Value> made;
    if (std::find(copied_.begin(), copied_.end(), true) == copied_.end()) return made;
    const std::vector<int32_t> read = first_reads();
    for (size_t i = 0; i < joint_.primals; ++i) {
      const Value primal = graph_.inputs()[i];
      if (!copied_[size_t(primal.id)]) continue;
      TensorMeta meta = graph_.meta(primal);
      meta.offset = 0;
      meta.requires_grad = false;
      const Value copy = halves.backward.add_value(meta);
      meta.storage = halves.forward.fresh_storage();
      halves.forward.add_value(meta);
      const int32_t reader = read[size_t(primal.id)];
      const std::string location = reader == no_node ? "" : graph_.nodes()[size_t(reader)].location;
      copies.push_back(Node{clone, {primal, c10::IValue()}, {copy}, {}, Phase::Forward, location});
      made.push_back(copy);
      own_.emplace(primal.id, copy);
    }
    auto& nodes = halves.forward.nodes();
    nodes.insert(nodes.begin(), copies.begin(), copies.end());
    return made;
  }

  /// Where the program reads each value first, by their ids.
  std::vector<int32_t> first_reads() const {
    std::vector<int32_t> first(graph_.value_count(), no_node);
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      for_each_argument(graph_.nodes()[n], [&](Value v) {
        if (first[size_t(v.id)] == no_node) first[size_t(v.id)] = int32_t(n);
      });
    return first;
  }

  std::vector<Value> in_order_of_joint() const {
    std::vector<Value> found;
    std::vector<bool> left = saved_;
    auto take = [&](Value v) {
      if (left[size_t(v.id)]) found.push_back(v);
      // a value that is both a result and a written argument is saved once
      left[size_t(v.id)] = false;
    };
    for (size_t i = 0; i < joint_.primals; ++i) take(graph_.inputs()[i]);
    for (const Node& node : graph_.nodes())
      if (node.phase == Phase::Forward) for_each_result(node, take);
    return found;
  }

  /// Each right before the first node that reads it.
  void add_what_runs_again(Graph& backward) {
    std::vector<Node> nodes = std::move(backward.nodes());
    backward.nodes().clear();
    std::vector<bool> added(graph_.nodes().size());
    for (Node& node : nodes) {
      for_each_argument(node, [&](Value v) { add_maker(backward, v, added); });
      backward.add_node(std::move(node));
    }
    for (Value v : backward.outputs())
      if (v) add_maker(backward, v, added);
    backward.constants() = graph_.constants();
    backward = without_unread_constants(std::move(backward));
  }

  void add_maker(Graph& backward, Value first, std::vector<bool>& added) {
    if (!is_run_again(first)) return;
    // and whether all that it is made of has been added
    std::vector<std::pair<Value, bool>> waiting{{first, false}};
    while (!waiting.empty()) {
      auto [v, is_ready] = waiting.back();
      waiting.pop_back();
      if (added[can_.maker(v)]) continue;
      if (is_ready) {
        added[can_.maker(v)] = true;
        backward.add_node(apart_from_saved(backward, can_.again(v)));
        continue;
      }
      waiting.emplace_back(v, true);
      can_.for_each_argument_again(v, [&](Value argument) {
        if (is_run_again_inside(argument)) waiting.emplace_back(argument, false);
      });
    }
  }

  /// A node may run again for the sake of one of its results while another is saved, and for others that run
  /// again while the backward's own nodes read what is saved.
  Node apart_from_saved(Graph& backward, Node node) {
    map_arguments(node, [&](Value v) { return own_.contains(v.id) ? own_.at(v.id) : v; });
    auto apart = [&](Value made) {
      if (!saved_[size_t(made.id)]) return made;
      TensorMeta meta = backward.meta(made);
      const Value other = backward.add_value(std::move(meta));
      if (can_.is_seen_by_caller(made)) own_.emplace(made.id, other);
      return other;
    };
    for (Operand& result : node.results) map_values(result, apart);
    for (auto& [before, after] : node.writes)
      if (after != before) after = apart(after);
    if (node.next_state) node.next_state = apart(node.next_state);
    return node;
  }

  const Joint& joint_;
  const Graph& graph_;
  const Recomputation& can_;
  const std::vector<bool>& chosen_;
  std::vector<bool> of_forward_, is_primal_, saved_, met_, copied_;
  /// What nodes that run again read in place of what lies in the caller's memory.
  std::unordered_map<int32_t, Value> own_;
};

}  // namespace

Graph half_of(const Graph& joint, Phase phase, std::vector<Value> inputs, std::vector<Value> outputs) {
  Graph half = joint.without_nodes();
  half.nodes().reserve(size_t(std::count_if(joint.nodes().begin(), joint.nodes().end(),
                                            [&](const Node& node) { return node.phase == phase; })));
  for (const Node& node : joint.nodes())
    if (node.phase == phase) half.add_node(node);
  half.set_inputs(std::move(inputs));
  half.set_outputs(std::move(outputs));
  return eliminate_dead_code(std::move(half));
}

void refuse_if_forward_needs_backward(const Joint& joint) {
  const Graph& graph = joint.graph;
  if (joint.primals > graph.inputs().size() || joint.forward_outputs > graph.outputs().size())
    throw Error(
        "the joint graph has fewer inputs or outputs than its forward claims; set Joint::primals and "
        "Joint::forward_outputs to what the graph has");
  std::vector<bool> late(graph.value_count());
  for (size_t i = joint.primals; i < graph.inputs().size(); ++i) late[size_t(graph.inputs()[i].id)] = true;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.phase == Phase::Backward) {
      for_each_result(node, [&](Value v) { late[size_t(v.id)] = true; });
      continue;
    }
    for_each_argument(node, [&](Value v) {
      if (late[size_t(v.id)])
        throw Error("a node of the forward reads " + graph.name(v) +
                    ", which only the backward has; record it in the backward\n" + excerpt(graph, i));
    });
  }
  for (size_t i = 0; i < joint.forward_outputs; ++i)
    if (Value v = graph.outputs()[i]; v && late[size_t(v.id)])
      throw Error("the forward returns " + graph.name(v) +
                  ", which only the backward has; make it an output of the backward");
}

Partition split_at(const Joint& joint, const PartitionContext& context, const Recomputation& can,
                   const std::vector<bool>& chosen) {
  return Splitter(joint, context, can, chosen).run();
}

Partition partition_recompute_all(const Joint& joint, const PartitionContext& context) {
  refuse_if_forward_needs_backward(joint);
  const Joint whole = with_generator_states(joint);
  return split_at(whole, context, Recomputation(whole, {}, context.marked_must_save),
                  std::vector<bool>(whole.graph.value_count(), false));
}

Partition partition_save_all(const Joint& joint, PartitionContext context) {
  refuse_if_forward_needs_backward(joint);
  const Recomputation can(joint, {}, context.marked_must_save);
  for (const Node& node : joint.graph.nodes()) {
    if (node.phase != Phase::Forward) continue;
    for_each_result(node, [&](Value v) {
      if (can.may_save(v) && !can.is_seen_by_caller(v)) context.must_save.push_back(v);
    });
  }
  return split_at(joint, context, can, std::vector<bool>(joint.graph.value_count(), true));
}

}  // namespace tandem
