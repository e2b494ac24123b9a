#include "aot/depths.h"

namespace tandem {
namespace {

using torch::autograd::Edge;

/// How deep what comes next to a cut is at least.
struct Least {
  size_t node = 0, view = 0;
};

class Deepener {
 public:
  Deepener(const HistoryOrder& history, const Landings& cuts) : history_(history), cuts_(cuts) {
    found_.of_nodes.resize(history.nodes.size());
    found_.of_views.resize(history.nodes.size());
  }

  Depths run(const std::vector<size_t>& roots) {
    for (size_t root : roots) deepen(found_.of_nodes[root], 0);
    for (size_t n = 0; n < history_.nodes.size(); ++n) {
      // Of the results of one operator the caller may have some, and others are used inside alone.
      if (found_.of_nodes[n]) pass_node(n);
      if (found_.of_views[n]) pass_view(n);
    }
    return std::move(found_);
  }

 private:
  static void deepen(std::optional<size_t>& depth, size_t least) {
    depth = std::max(depth.value_or(0), least);
  }

  void pass_node(size_t n) {
    std::optional<size_t>& depth = found_.of_nodes[n];
    const auto& edges = history_.nodes[n]->next_edges();
    for (const Edge& edge : edges)
      if (cuts_.count(edge)) deepen(depth, least_[edge].node);
    for (const Edge& edge : edges) {
      if (!edge.function) continue;
      if (!cuts_.count(edge)) {
        deepen(found_.of_nodes[history_.number_of(edge)], *depth);
        continue;
      }
      least_[edge] = {*depth, *depth + 1};
      lead_across(edge, *depth + 1);
    }
  }

  void pass_view(size_t n) {
    const Edge& edge = history_.nodes[n]->next_edge(0);
    if (!cuts_.count(edge)) {
      deepen(found_.of_nodes[history_.number_of(edge)], *found_.of_views[n]);
      return;
    }
    std::optional<size_t>& depth = found_.of_views[n];
    deepen(depth, least_[edge].view);
    least_[edge] = {*depth, *depth};
    lead_across(edge, *depth);
  }

  void lead_across(const Edge& cut, size_t depth) {
    const size_t landing = cuts_.at(cut);
    deepen(found_.of_nodes[landing], depth);
    if (const size_t n = history_.number_of(cut); n != landing) deepen(found_.of_views[n], depth);
  }

  const HistoryOrder& history_;
  const Landings& cuts_;
  std::unordered_map<Edge, Least> least_;
  Depths found_;
};

}  // namespace

Depths find_depths(const HistoryOrder& history, const std::vector<size_t>& roots, const Landings& cuts) {
  return Deepener(history, cuts).run(roots);
}

}  // namespace tandem
