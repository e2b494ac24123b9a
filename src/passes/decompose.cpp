#include "graph/boxing.h"
#include "graph/geometry.h"
#include "ops/facts.h"

#include <tandem/build.h>
#include <tandem/error.h>
#include <tandem/passes.h>

#include <unordered_set>

namespace tandem {
namespace {

/// A decomposition that leads back to its own operator would never end.
constexpr int deepest_nesting = 16;

/// The values that one decomposition made, on their way to take the names of the call's results.
class Replacement {
 public:
  Replacement(Graph& graph, const Node& node, size_t first_node, size_t first_value)
      : graph_(graph), node_(node), first_node_(first_node), first_value_(first_value) {
    for_each_argument(node, [&](Value v) { argument_storages_.insert(graph.meta(v).storage); });
  }

  void take(const std::vector<Value>& made) {
    std::vector<Value> wanted;
    for_each_result(node_, [&](Value v) { wanted.push_back(v); });
    if (made.size() != wanted.size())
      throw Error("the decomposition of " + full_name(node_.op) + " returns " + std::to_string(made.size()) +
                  " values where the call has " + std::to_string(wanted.size()) +
                  " results; return one for each, those of written arguments last");
    for (size_t i = 0; i < made.size(); ++i) renamed_[fit(made[i], wanted[i]).id] = wanted[i];
  }

  /// The new nodes, taken off the graph.
  std::vector<Node> nodes() {
    for (const auto& [made, wanted] : renamed_)
      storages_.try_emplace(graph_.meta(Value{made}).storage, graph_.meta(wanted).storage);
    for (size_t id = first_value_; id < graph_.value_count(); ++id)
      if (auto kept = storages_.find(graph_.meta(Value{int32_t(id)}).storage); kept != storages_.end())
        graph_.meta(Value{int32_t(id)}).storage = kept->second;
    auto& all = graph_.nodes();
    std::vector<Node> taken(std::make_move_iterator(all.begin() + first_node_),
                            std::make_move_iterator(all.end()));
    all.erase(all.begin() + first_node_, all.end());
    for (Node& node : taken) rename(node);
    return taken;
  }

 private:
  /// `made`, or a copy of it where it lies otherwise in memory than the value whose name it takes.
  Value fit(Value made, Value wanted) {
    const TensorMeta target = graph_.meta(wanted), meta = made ? graph_.meta(made) : TensorMeta();
    if (!made || meta.dtype != target.dtype || meta.sizes != target.sizes || meta.device != target.device)
      throw Error("the decomposition of " + full_name(node_.op) +
                  " returns another dtype, size or device than the call " + to_string(graph_, node_) +
                  "; return values of the same kind");
    if (!same_strides(meta, target)) {
      std::vector<int64_t> sizes(target.sizes.begin(), target.sizes.end()),
          strides(target.strides.begin(), target.strides.end());
      return call("aten::copy",
                  {call("aten::new_empty_strided", {made, c10::IValue(sizes), c10::IValue(strides)}), made});
    }
    return is_apart(made, target) ? made : call("aten::clone", {made});
  }

  /// Made by one of the new nodes, and in memory of its own if the call's result is.
  bool is_apart(Value made, const TensorMeta& target) const {
    const TensorMeta& meta = graph_.meta(made);
    if (renamed_.contains(made.id) || !made_by_new_node(made)) return false;
    if (argument_storages_.contains(meta.storage) && !argument_storages_.contains(target.storage))
      return false;
    return std::none_of(renamed_.begin(), renamed_.end(), [&](const auto& other) {
      return graph_.meta(Value{other.first}).storage == meta.storage &&
             graph_.meta(other.second).storage != target.storage;
    });
  }

  bool made_by_new_node(Value made) const {
    bool found = false;
    for (size_t i = first_node_; i < graph_.nodes().size(); ++i)
      for_each_result(graph_.nodes()[i], [&](Value v) { found = found || v == made; });
    return found;
  }

  void rename(Node& node) const {
    auto new_name = [&](Value v) {
      auto found = renamed_.find(v.id);
      return found == renamed_.end() ? v : found->second;
    };
    map_arguments(node, new_name);
    for (Operand& operand : node.results) map_values(operand, new_name);
    for (auto& [before, after] : node.writes) before = new_name(before), after = new_name(after);
  }

  Value call(const char* op, std::vector<Operand> arguments) {
    return std::get<Value>(append_call(graph_, find_op(op), std::move(arguments), node_.phase).results[0]);
  }

  Graph& graph_;
  const Node& node_;
  const size_t first_node_, first_value_;
  std::unordered_set<int32_t> argument_storages_;
  std::unordered_map<int32_t, Value> renamed_;
  std::unordered_map<int32_t, int32_t> storages_;
};

/// Writes a graph anew, node by node. A replaced value keeps its name and its description, so that nothing
/// behind it has to change.
class Decomposer {
 public:
  Decomposer(Graph graph, const DecompositionTable& table) : graph_(std::move(graph)), table_(table) {}

  Graph run() {
    std::vector<Node> recorded = std::move(graph_.nodes());
    graph_.nodes().clear();
    for (Node& node : recorded) emit(std::move(node), 0);
    return std::move(graph_);
  }

 private:
  void emit(Node node, int depth) {
    auto row = table_.find(full_name(node.op));
    if (row == table_.end() || reads_numbers(node) || node.state)
      return graph_.nodes().push_back(std::move(node));
    if (depth > deepest_nesting)
      throw Error("the decomposition of " + row->first + " leads back to itself; let it use other operators");
    const size_t first_node = graph_.nodes().size(), first_value = graph_.value_count();
    std::vector<Value> made = row->second(graph_, node);
    if (made.empty()) {  // declined
      graph_.nodes().erase(graph_.nodes().begin() + first_node, graph_.nodes().end());
      return graph_.nodes().push_back(std::move(node));
    }
    Replacement replacement(graph_, node, first_node, first_value);
    replacement.take(made);
    for (Node& part : replacement.nodes()) {
      part.location = node.location;
      emit(std::move(part), depth + 1);
    }
  }

  Graph graph_;
  const DecompositionTable& table_;
};

}  // namespace

Graph decompose(Graph graph, const DecompositionTable& table) {
  return Decomposer(std::move(graph), table).run();
}

}  // namespace tandem
