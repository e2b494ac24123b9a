#include "passes/counter_numbers.h"

#include <tandem/passes.h>

#include <algorithm>
#include <map>

#include "base/verdicts.h"
#include "graph/draws.h"
#include "ops/counter_numbers.h"
#include "ops/facts.h"
#include "ops/generator_state.h"
#include "passes/counter_formulas.h"

namespace tandem {
namespace {

std::vector<Value> drawn_by(Node node) {
  node.next_state = {};
  std::vector<Value> values;
  for_each_result(node, [&](Value made) { values.push_back(made); });
  return values;
}

/// Whether two draws that begin in one state draw the same numbers.
bool draw_the_same(const Graph& graph, const Node& a, const Node& b) {
  auto same_constants = [](const Operand& one, const Operand& other) {
    auto *first = std::get_if<c10::IValue>(&one), *second = std::get_if<c10::IValue>(&other);
    return first && second ? *first == *second : !first && !second;
  };
  auto same_metas = [&](Value one, Value other) { return same_geometry(graph.meta(one), graph.meta(other)); };
  auto equal = [](const auto& one, const auto& other, const auto& same) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(), same);
  };
  return a.op == b.op && equal(a.arguments, b.arguments, same_constants) &&
         equal(drawn_by(a), drawn_by(b), same_metas);
}

/// The draws of a graph, counted from 0 in the order of those from the live generator. One from a state that
/// was put back has the number of the one that it repeats.
class DrawNumbers {
 public:
  /// The first `own` are of the program, the others of its backward, before which others may have drawn.
  DrawNumbers(const Graph& graph, size_t own) : graph_(graph), own_(own) {
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      const Node& node = graph.nodes()[n];
      if (reads_generator(node.op)) read_ = std::get<Value>(node.results[0]);
      if (draws_live(node)) note_live(n);
      if (node.state) note_again(n, node);
    }
  }

  size_t count() const { return live_.size(); }
  /// Where a draw is among the nodes.
  size_t node(size_t draw) const { return live_[draw]; }
  /// The state that a draw begins in, where it is read.
  Value state(size_t draw) const { return states_[draw]; }
  /// Which draw a node is or repeats.
  std::optional<size_t> number_of(size_t node) const {
    const auto found = numbers_.find(node);
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  void note_live(size_t n) {
    if (read_) begins_in_.emplace(read_, live_.size());
    numbers_.emplace(n, live_.size());
    live_.push_back(n);
    states_.push_back(std::exchange(read_, Value{}));
  }

  void note_again(size_t n, const Node& node) {
    const auto found = begins_in_.find(node.state);
    const size_t number = found == begins_in_.end() ? live_.size() : found->second;
    const bool is_known = number < live_.size() && states_[number];
    if (!is_known || !draw_the_same(graph_, node, graph_.nodes()[live_[number]]))
      throw RunEagerly(
          full_name(node.op) +
          " draws random numbers again that are not those of an earlier draw, which counter-based "
          "numbers cannot give; with Options::random = \"libtorch\" it is compiled");
    numbers_.emplace(n, number);
    if (node.next_state && number + 1 != own_) begins_in_.emplace(node.next_state, number + 1);
  }

  const Graph& graph_;
  const size_t own_;
  Value read_;  ///< the state, where it was read since the last draw
  std::vector<size_t> live_;
  std::vector<Value> states_;
  std::map<Value, size_t> begins_in_;  ///< by the state
  std::map<size_t, size_t> numbers_;   ///< by the node
};

class CounterNumbers {
 public:
  CounterNumbers(Graph graph, size_t own) : graph_(std::move(graph)), own_(own), draws_(graph_, own) {}

  Counted run() {
    for (size_t draw = 0; draw < draws_.count(); ++draw) {
      const Node& node = graph_.nodes()[draws_.node(draw)];
      counted_.push_back(draw < own_ && has_counter_formula(graph_, node));
      if (!counted_.back()) left_.push_back(full_name(node.op));
    }
    take_seeds();
    // Memory that draws wrote is not written any more, and states that they began in are not drawn from.
    return {eliminate_dead_code(decompose(std::move(graph_), formulas())), std::move(left_)};
  }

 private:
  /// Says of each draw that is counted which one it is, and puts seeds before the first of them.
  void take_seeds() {
    std::vector<Node> nodes = std::move(graph_.nodes());
    graph_.nodes().clear();
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (const auto number = draws_.number_of(n)) take_seed(nodes[n], *number);
      graph_.nodes().push_back(std::move(nodes[n]));
    }
  }

  void take_seed(Node& node, size_t number) {
    if (!counted_[number]) {
      if (node.state) node.state = draws_.state(number), node.next_state = {};
      return;
    }
    node.state = node.next_state = {};
    chosen_.emplace(drawn_by(node).front(), CounterDraw{seed_for(node), int64_t(number)});
  }

  Value seed_for(const Node& draw) {
    const c10::Device device = drawn_on(graph_, draw);
    Value& seed = seeds_[device.str()];
    if (seed) return seed;
    TensorMeta meta;
    meta.dtype = at::kLong;
    meta.sizes = {2};
    meta.strides = {1};
    meta.storage = graph_.fresh_storage();
    seed = graph_.add_value(std::move(meta));
    Node node{counter_seed_operator(), {c10::IValue(device)}, {seed}};
    node.phase = draw.phase;
    node.location = draw.location;
    graph_.nodes().push_back(std::move(node));
    return seed;
  }

  DecompositionTable formulas() const {
    DecompositionTable table;
    for (const std::string& op : counter_operators())
      table[op] = [this](Graph& graph, const Node& node) {
        const auto draw = chosen_.find(drawn_by(node).front());
        return draw == chosen_.end() ? std::vector<Value>() : counter_formula(graph, node, draw->second);
      };
    return table;
  }

  Graph graph_;
  const size_t own_;
  const DrawNumbers draws_;
  std::vector<bool> counted_;  ///< by the number of the draw
  std::vector<std::string> left_;
  std::map<std::string, Value> seeds_;   ///< by the device
  std::map<Value, CounterDraw> chosen_;  ///< by the first value that is drawn
};

}  // namespace

Counted with_counter_numbers(Graph graph, size_t draws) {
  return CounterNumbers(std::move(graph), draws).run();
}

}  // namespace tandem
