#include "aot/saving.h"

#include <torch/csrc/autograd/functions/tensor.h>
#include <torch/csrc/autograd/variable.h>

#include <set>

#include "base/history.h"

namespace tandem {
namespace {

using HistoryNode = torch::autograd::Node;

/// Each node before those that it leads to.
std::vector<HistoryNode*> in_order(const Tensors& sources) {
  const std::vector<HistoryNode*> nodes = nodes_behind(sources);
  std::unordered_map<const HistoryNode*, size_t> waiting;
  for (const HistoryNode* node : nodes)
    for (const auto& edge : node->next_edges())
      if (edge.function) ++waiting[edge.function.get()];
  std::vector<HistoryNode*> ordered;
  for (HistoryNode* node : nodes)
    if (!waiting.count(node)) ordered.push_back(node);
  for (size_t next = 0; next < ordered.size(); ++next)
    for (const auto& edge : ordered[next]->next_edges())
      if (edge.function && --waiting[edge.function.get()] == 0) ordered.push_back(edge.function.get());
  return ordered;
}

/// A write to a part of a tensor owns the node of the operator that wrote, and gives that up.
bool uses_itself_up(const Tracer& tracer, const HistoryNode& node) { return tracer.has_saved(node) || dynamic_cast<const torch::autograd::CopySlices*>(&node); }

}  // namespace

std::vector<Between> saving_nodes(const Tracer& tracer, const Tensors& sources, const std::vector<size_t>& inputs) {
  const std::vector<HistoryNode*> nodes = in_order(sources);
  std::unordered_map<const HistoryNode*, Between> places;
  for (const HistoryNode* node : nodes) places.emplace(node, Between{Bits(sources.size()), Bits(inputs.size())});
  for (size_t s = 0; s < sources.size(); ++s)
    if (auto place = places.find(sources[s].grad_fn().get()); place != places.end()) place->second.sources.insert(s);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (auto place = places.find(torch::autograd::impl::gradient_edge(tracer.inputs()[inputs[i]].leaf).function.get()); place != places.end()) place->second.inputs.insert(i);
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
