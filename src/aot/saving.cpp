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
  std::unordered_map<const HistoryNode*, Between> places;
  for (const HistoryNode* node : nodes)
    places.emplace(node, Between{Bits(sources.size()), Bits(leaves.size())});
  for (size_t s = 0; s < sources.size(); ++s)
    if (auto place = places.find(sources[s].grad_fn().get()); place != places.end())
      place->second.sources.insert(s);
  for (size_t i = 0; i < leaves.size(); ++i)
    if (auto place = places.find(torch::autograd::impl::gradient_edge(leaves[i]).function.get());
        place != places.end())
      place->second.inputs.insert(i);
  for (const HistoryNode* node : nodes)
    for (const auto& edge : node->next_edges())
      if (edge.function) places[edge.function.get()].sources |= places[node].sources;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
    for (const auto& edge : (*node)->next_edges())
      if (edge.function) places[*node].inputs |= places[edge.function.get()].inputs;
  std::set<Between> found;
  for (const HistoryNode* node : nodes)
    if (uses_itself_up(tracer, *node)) found.insert(places[node]);
  return {found.begin(), found.end()};
}

}  // namespace tandem
