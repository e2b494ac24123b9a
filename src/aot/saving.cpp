#include "aot/saving.h"

#include <torch/csrc/autograd/functions/tensor.h>
#include <torch/csrc/autograd/variable.h>

#include <set>

#include "base/history.h"

namespace tandem {
namespace {

using HistoryNode = torch::autograd::Node;

/// A write to a part of a tensor owns the node of the operator that wrote, and gives that up.
bool uses_itself_up(const Tracer& tracer, const HistoryNode& node) {
  return tracer.has_saved(node) || dynamic_cast<const torch::autograd::CopySlices*>(&node);
}

}  // namespace

std::vector<Between> saving_nodes(const Tracer& tracer, const Tensors& sources, const Tensors& leaves) {
  const std::vector<HistoryNode*> nodes = nodes_in_order(sources);
  std::unordered_map<const HistoryNode*, size_t> numbers;
  numbers.reserve(nodes.size());
  for (const HistoryNode* node : nodes) numbers.emplace(node, numbers.size());
  std::vector<Between> places(nodes.size(), Between{Bits(sources.size()), Bits(leaves.size())});
  for (size_t s = 0; s < sources.size(); ++s)
    if (auto number = numbers.find(sources[s].grad_fn().get()); number != numbers.end())
      places[number->second].sources.insert(s);
  for (size_t i = 0; i < leaves.size(); ++i)
    if (auto number = numbers.find(torch::autograd::impl::gradient_edge(leaves[i]).function.get());
        number != numbers.end())
      places[number->second].inputs.insert(i);
  std::vector<std::pair<size_t, size_t>> edges;  // from, to
  for (size_t n = 0; n < nodes.size(); ++n)
    for (const auto& edge : nodes[n]->next_edges())
      if (edge.function) edges.emplace_back(n, numbers.at(edge.function.get()));
  for (const auto& [from, to] : edges) places[to].sources |= places[from].sources;
  for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge)
    places[edge->first].inputs |= places[edge->second].inputs;
  std::set<Between> found;
  for (size_t n = 0; n < nodes.size(); ++n)
    if (uses_itself_up(tracer, *nodes[n])) found.insert(places[n]);
  return {found.begin(), found.end()};
}

}  // namespace tandem
