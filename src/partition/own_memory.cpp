#include "partition/own_memory.h"

#include <tandem/build.h>

#include <unordered_map>

#include "graph/uses.h"

namespace tandem {
namespace {

class OwnMemory {
 public:
  explicit OwnMemory(Graph graph) : graph_(std::move(graph)), of_inputs_(storages_of_inputs(graph_)) {}

  Graph run() && {
    if (std::any_of(graph_.nodes().begin(), graph_.nodes().end(),
                    [this](const Node& node) { return writes_kept_memory(node); }))
      for (const Node& node : std::exchange(graph_.nodes(), {})) add(node);
    return std::move(graph_);
  }

 private:
  bool is_input(Value value) const {
    return std::find(graph_.inputs().begin(), graph_.inputs().end(), value) != graph_.inputs().end();
  }
  bool is_copy_back(const Node& node) const {
    return node.op.operator_name().name == "aten::copy_" && is_input(node.writes[0].first);
  }

  bool writes_kept_memory(const Node& node) const {
    return !is_copy_back(node) && std::any_of(node.writes.begin(), node.writes.end(), [&](const auto& write) {
      return of_inputs_.contains(graph_.meta(write.first).storage);
    });
  }

  void add(Node node) {
    if (writes_kept_memory(node))
      for (auto& [before, after] : node.writes) write_elsewhere(node, before);
    std::unordered_map<int32_t, int32_t> places;  // of the memory that it reads
    for_each_argument(node, [&](Value read) {
      if (const auto moved = was_in_.find(read.id); moved != was_in_.end())
        places.emplace(moved->second, graph_.meta(read).storage);
    });
    for_each_result(node, [&](Value made) {
      if (const auto place = places.find(graph_.meta(made).storage); place != places.end())
        move(made, place->second);
    });
    graph_.add_node(std::move(node));
  }

  /// What is written is fresh where it is no input: nothing has read it, so all that lies there is known.
  void write_elsewhere(Node& node, Value& before) {
    if (was_in_.contains(before.id) || !of_inputs_.contains(graph_.meta(before).storage)) return;
    if (is_input(before)) {
      static const c10::OperatorHandle clone = find_op("aten::clone");
      TensorMeta meta = graph_.meta(before);
      const Value copy = graph_.add_value(std::move(meta));
      graph_.add_node(Node{clone, {before, c10::IValue()}, {copy}, {}, node.phase, node.location});
      const Value kept = before;
      for (Operand& argument : node.arguments)
        map_values(argument, [&](Value v) { return v == kept ? copy : v; });
      before = copy;
    }
    move(before, graph_.fresh_storage());
  }

  void move(Value value, int32_t storage) {
    was_in_.emplace(value.id, graph_.meta(value).storage);
    graph_.meta(value).storage = storage;
  }

  Graph graph_;
  const std::unordered_set<int32_t> of_inputs_;
  std::unordered_map<int32_t, int32_t> was_in_;  ///< of what lies elsewhere now: its storage before
};

}  // namespace

Graph with_own_memory(Graph graph) { return OwnMemory(std::move(graph)).run(); }

}  // namespace tandem
