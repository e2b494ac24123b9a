// What a compiled node does where the engine comes by without a gradient.
#include <torch/csrc/autograd/graph_task.h>

#include "runtime/compiled_node.h"

namespace tandem {

using torch::autograd::variable_list;

/// Steps to views, and doors, have no gradient for what they lead to then.
void CompiledNode::note_passage_behind(torch::autograd::Edge edge) {
  while (edge.is_valid()) {
    if (auto* node = dynamic_cast<CompiledNode*>(edge.function.get()))
      return node->note_passage(edge.input_nr);
    if (edge.function->num_outputs() != 1) return;
    edge = edge.function->next_edge(0);
  }
}

/// libtorch's own nodes have no gradient where they are given none; custom functions are given zeros then.
bool CompiledNode::brings_any(const variable_list& gradients, const std::vector<bool>& passages) const {
  if (std::any_of(gradients.begin(), gradients.end(), [](const at::Tensor& g) { return g.defined(); }))
    return true;
  if (!part().runs_own_code || std::find(passages.begin(), passages.end(), true) == passages.end())
    return false;
  for (size_t i = 0; i < num_outputs(); ++i)
    if (wants(i)) return true;
  return false;
}

std::vector<bool> CompiledNode::take_passages(const variable_list& gradients) {
  if (part().reaches.empty()) return {};
  std::vector<bool> found(gradients.size());
  const int task = torch::autograd::get_current_graph_task_id();
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < gradients.size(); ++i)
    found[i] = passages_.erase({task, i}) > 0 && !gradients[i].defined();
  return found;
}

std::vector<bool> CompiledNode::all_that_come(const variable_list& gradients, std::vector<bool> passages) {
  for (size_t i = 0; i < passages.size(); ++i) passages[i] = passages[i] || gradients[i].defined();
  return passages;
}

/// A node stands for many of eager's, of which the engine comes by those alone that lie behind these sources.
void CompiledNode::pass_on(const std::vector<bool>& came, const variable_list& found) {
  const auto& reaches = part().reaches;
  for (size_t i = 0; i < found.size() && !reaches.empty(); ++i) {
    bool is_reached = false;
    for (size_t s = 0; s < came.size(); ++s) is_reached = is_reached || (came[s] && reaches[s][i]);
    if (found[i].defined() || !is_reached || !next_edge(i).is_valid() || !wants(i)) continue;
    note_passage_behind(next_edge(i));
  }
}

void CompiledNode::note_passage(size_t place) {
  if (part().reaches.empty()) return;
  std::lock_guard lock(mutex_);
  passages_.emplace(torch::autograd::get_current_graph_task_id(), place);
}

}  // namespace tandem
