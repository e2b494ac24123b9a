#include "ops/facts.h"
#include "ops/generator_state.h"
#include "ops/versions.h"

#include <tandem/passes.h>

#include <unordered_set>

namespace tandem {
namespace {

/// Larger results are cheaper to compute again than to keep.
constexpr int64_t largest_result = 64 * 1024;

bool has_tensor_argument(const Node& node) {
  bool any = false;
  for_each_argument(node, [&](Value) { any = true; });
  return any;
}

/// Splits a graph into the nodes that depend on constants alone and the others.
class Folder {
 public:
  explicit Folder(Graph graph)
      : graph_(std::move(graph)), known_(graph_.value_count()), folded_(graph_.nodes().size()) {
    for (const auto& [value, data] : graph_.constants()) known_[value.id] = true;
    for (Value v : graph_.outputs())
      if (v) pinned_storages_.insert(graph_.meta(v).storage);
    for (const Node& node : graph_.nodes())
      for (const auto& [before, after] : node.writes) pinned_storages_.insert(graph_.meta(before).storage);
  }

  Graph run() {
    choose_nodes();
    if (std::find(folded_.begin(), folded_.end(), true) == folded_.end()) return std::move(graph_);
    std::vector<Value> wanted = values_that_others_read();
    try {
      Tensors data = evaluate(wanted);
      replace(wanted, std::move(data));
    } catch (const c10::Error&) {
      // An error belongs to the run that computes the value, which may be a backward that nobody asks for.
    }
    return std::move(graph_);
  }

 private:
  /// A lone factory stays: computing zeros costs less than keeping them, and what unset memory holds is
  /// different each time. One that feeds a folded node is evaluated with it.
  void choose_nodes() {
    for (size_t i = 0; i < folded_.size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (!may_run_now(node)) continue;
      folded_[i] = has_tensor_argument(node) && !facts(node.op).unset;
      for_each_result(node, [&](Value v) { known_[v.id] = true; });
    }
  }

  bool may_run_now(const Node& node) const {
    const OpFacts& op = facts(node.op);
    if (op.random || op.side_effect || reads_generator(node.op) || is_foreign(node.op) || op.data_dependent ||
        !op.written.empty() || !node.writes.empty())
      return false;
    bool known = true, small = true, apart = true;
    for_each_argument(node, [&](Value v) { known = known && known_[v.id]; });
    for_each_result(node, [&](Value v) {
      const TensorMeta& meta = graph_.meta(v);
      small = small && meta.numel() * int64_t(c10::elementSize(meta.dtype)) <= largest_result;
      apart = apart && !pinned_storages_.contains(meta.storage);
    });
    // What leaves the graph or is written later must be made anew in every run, with the views of it.
    return known && small && apart;
  }

  std::vector<Value> values_that_others_read() const {
    std::vector<bool> made(graph_.value_count()), listed(graph_.value_count());
    std::vector<Value> wanted;
    for (size_t i = 0; i < folded_.size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (folded_[i])
        for_each_result(node, [&](Value v) { made[v.id] = true; });
      else
        for_each_argument(node, [&](Value v) {
          if (made[v.id] && !listed[v.id]) wanted.push_back(v), listed[v.id] = true;
        });
    }
    return wanted;
  }

  Tensors evaluate(const std::vector<Value>& wanted) const {
    Graph constant_part = graph_;
    size_t index = 0;
    std::erase_if(constant_part.nodes(),
                  [&](const Node& node) { return !folded_[index++] && !may_run_now(node); });
    constant_part.set_inputs({});
    constant_part.set_outputs(wanted);
    return eliminate_dead_code(std::move(constant_part)).run({});
  }

  void replace(const std::vector<Value>& wanted, Tensors data) {
    size_t index = 0;
    std::erase_if(graph_.nodes(), [&](const Node&) { return bool(folded_[index++]); });
    for (size_t i = 0; i < wanted.size(); ++i) graph_.constants().emplace_back(wanted[i], std::move(data[i]));
  }

  Graph graph_;
  std::vector<bool> known_;   ///< values that depend on constants alone
  std::vector<bool> folded_;  ///< nodes
  std::unordered_set<int32_t> pinned_storages_;
};

}  // namespace

Graph fold_constants(Graph graph) { return Folder(std::move(graph)).run(); }

}  // namespace tandem
