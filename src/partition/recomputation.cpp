#include "graph/draws.h"
#include "graph/geometry.h"
#include "graph/uses.h"
#include "ops/facts.h"
#include "ops/generator_state.h"
#include "ops/versions.h"
#include "partition/split.h"

namespace tandem {

Joint with_generator_states(Joint joint) {
  Graph& graph = joint.graph;
  std::vector<Node> nodes = std::move(graph.nodes());
  graph.nodes().clear();
  for (Node& node : nodes) {
    const bool has_state = !graph.nodes().empty() && reads_generator(graph.nodes().back().op);
    if (node.phase == Phase::Forward && draws_live(node) && !has_state && can_be_replayed(graph, node))
      graph.add_node(state_before(graph, node));
    graph.add_node(std::move(node));
  }
  return joint;
}

std::vector<bool> read_by_backward(const Joint& joint) {
  const Graph& graph = joint.graph;
  std::vector<bool> read(graph.value_count());
  for (size_t i = joint.forward_outputs; i < graph.outputs().size(); ++i)
    if (Value gradient = graph.outputs()[i]) read[size_t(gradient.id)] = true;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    bool runs = false;
    for_each_result(*node, [&](Value v) { runs = runs || read[size_t(v.id)]; });
    if (runs && node->phase == Phase::Backward)
      for_each_argument(*node, [&](Value v) { read[size_t(v.id)] = true; });
  }
  return read;
}

std::vector<bool> primals_read_by_backward(const Joint& joint, const PartitionContext& context) {
  const Graph& graph = joint.graph;
  ByStorage<int32_t> users(graph);  // primals, outputs and writes
  for (size_t i = 0; i < joint.primals; ++i) ++users[graph.meta(graph.inputs()[i]).storage];
  for (size_t i = 0; i < joint.forward_outputs; ++i)
    if (Value output = graph.outputs()[i]) ++users[graph.meta(output).storage];
  for (Value primal : context.given_back) ++users[graph.meta(primal).storage];
  for (const Node& node : graph.nodes())
    for (const auto& [before, after] : node.writes) ++users[graph.meta(before).storage];
  const std::vector<bool> read = read_by_backward(joint);
  StorageSet read_storages(graph);  // a view of a primal has its version
  for (size_t id = 0; id < read.size(); ++id)
    if (read[id]) read_storages.insert(graph.meta(Value{int32_t(id)}).storage);
  std::vector<bool> found(graph.value_count());
  for (size_t i = 0; i < joint.primals; ++i) {
    const int32_t storage = graph.meta(graph.inputs()[i]).storage;
    found[size_t(graph.inputs()[i].id)] = read_storages.contains(storage) && users[storage] == 1;
  }
  return found;
}

Recomputation::Recomputation(const Joint& joint, std::vector<bool> as_they_are,
                             const std::vector<Value>& never)
    : graph_(joint.graph),
      as_they_are_(std::move(as_they_are)),
      maker_(makers(joint.graph)),
      is_constant_(graph_.value_count()),
      is_primal_(graph_.value_count()),
      written_(graph_.value_count()),
      repeatable_(graph_.nodes().size()),
      reads_primals_(graph_.value_count()),
      seen_(graph_),
      primals_(graph_),
      shared_(graph_),
      never_(graph_) {
  for (size_t i = 0; i < joint.primals; ++i) {
    const int32_t storage = graph_.meta(graph_.inputs()[i]).storage;
    is_primal_[size_t(graph_.inputs()[i].id)] = true;
    if (!primals_.insert(storage)) shared_.insert(storage);
  }
  seen_ = primals_;
  for (size_t i = 0; i < joint.forward_outputs; ++i)
    if (Value output = graph_.outputs()[i]) seen_.insert(graph_.meta(output).storage);
  for (const auto& [constant, data] : graph_.constants()) is_constant_[size_t(constant.id)] = true;
  for (const Node& node : graph_.nodes())
    for (const auto& [before, after] : node.writes) written_[size_t(before.id)] = true;
  for (Value v : never)
    if (const int32_t storage = graph_.meta(v).storage; storage >= 0) never_.insert(storage);
  for (size_t n = 0; n < graph_.nodes().size(); ++n) {
    const Node& node = graph_.nodes()[n];
    repeatable_[n] = is_repeatable(n);
    bool reads_primals = false;
    for_each_argument(node, [&](Value v) {
      reads_primals = reads_primals || is_read_as_it_is(v) || reads_primals_[size_t(v.id)];
    });
    for_each_result(node, [&](Value v) { reads_primals_[size_t(v.id)] = reads_primals; });
  }
}

bool Recomputation::is_seen_by_caller(Value value) const {
  return seen_.contains(graph_.meta(value).storage);
}

/// A copy lies in memory as the original does where that has no gaps, and views of it are then the same
/// views.
bool Recomputation::may_be_copied(Value primal) const {
  const TensorMeta& meta = graph_.meta(primal);
  return is_dense(meta) && !meta.conj && !meta.neg && !shared_.contains(meta.storage);
}

/// One that is not made from copies alone. Where it was saved for its own sake, another backward would read
/// that, which the caller may have written, in place of what eager's reads.
bool Recomputation::is_output_behind_primals(Value value) const {
  return reads_primals_[size_t(value.id)] && is_seen_by_caller(value) &&
         !primals_.contains(graph_.meta(value).storage);
}

/// For a node that runs again. What the caller has may be another thing by then.
bool Recomputation::is_available(Value value) const {
  if (is_constant_[size_t(value.id)]) return true;
  if (is_primal_[size_t(value.id)]) return is_read_as_it_is(value) || may_be_copied(value);
  return (may_recompute(value) && !is_output_behind_primals(value)) ||
         (maker_[size_t(value.id)] >= 0 && may_save(value) && !is_seen_by_caller(value));
}

bool Recomputation::is_repeatable(size_t n) const {
  const Node& node = graph_.nodes()[n];
  const OpFacts& op = facts(node.op);
  if (node.phase != Phase::Forward || op.side_effect || op.minds_grad_mode || is_foreign(node.op) ||
      reads_generator(node.op))
    return false;
  if (draws_live(node) && !state_of(n)) return false;
  bool may_run = true;
  for_each_argument(node, [&](Value v) { may_run = may_run && is_available(v); });
  for (const auto& [before, after] : node.writes) may_run = may_run && !is_seen_by_caller(before);
  // Places in memory are counted from where a storage begins, and a copy's begins elsewhere.
  if (op.view && op.counts_from_storage)
    for_each_argument(node,
                      [&](Value v) { may_run = may_run && !primals_.contains(graph_.meta(v).storage); });
  for_each_result(node, [&](Value v) { may_run = may_run && !never_.contains(graph_.meta(v).storage); });
  // What unset memory holds is another thing each time, unless it is written first.
  if (op.unset) for_each_result(node, [&](Value v) { may_run = may_run && written_[size_t(v.id)]; });
  return may_run;
}

Value Recomputation::state_of(size_t node) const {
  if (node == 0 || !reads_generator(graph_.nodes()[node - 1].op)) return {};
  return std::get<Value>(graph_.nodes()[node - 1].results[0]);
}

/// Of a node that draws: what it draws from when it runs again.
Value Recomputation::state_again(size_t node) const {
  return draws_live(graph_.nodes()[node]) ? state_of(node) : Value();
}

Node Recomputation::again(Value value) const {
  Node node = graph_.nodes()[maker(value)];
  if (Value state = state_again(maker(value))) node.state = state;
  node.phase = Phase::Backward;
  return node;
}

}  // namespace tandem
