/// How deep the nodes of a traced history lie, counted in cuts.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include <torch/csrc/autograd/function.h>

namespace tandem {

/// The nodes of a history as autograd goes through them.
struct HistoryOrder {
  std::vector<torch::autograd::Node*> nodes;
  std::unordered_map<const torch::autograd::Node*, size_t> numbers;

  void add(torch::autograd::Node* node) {
    if (numbers.try_emplace(node, nodes.size()).second) nodes.push_back(node);
  }
  size_t number_of(const torch::autograd::Edge& edge) const { return numbers.at(edge.function.get()); }
};

/// For every edge that the history is cut at, the node at which the gradient arrives in turn: the one that it
/// leads to, or behind views which are the caller's own.
using Landings = std::unordered_map<torch::autograd::Edge, size_t>;

/// How many cuts lie before a node on the longest way to it, where something else than a cut leads there. A
/// node of the caller's has a depth of its own: it runs before pieces of the same depth.
struct Depths {
  std::vector<std::optional<size_t>> of_nodes, of_views;
};

/// What arrives at a cut is added up outside, one piece or view after the other: a node that eager runs
/// behind another one, which leads to the same cut, is as deep at least as to run behind it.
Depths find_depths(const HistoryOrder& history, const std::vector<size_t>& roots, const Landings& cuts);

}  // namespace tandem
