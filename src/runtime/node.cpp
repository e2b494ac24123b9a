#include "runtime/node.h"

#include "runtime/compiled_node.h"

#include <torch/csrc/autograd/functions/utils.h>

namespace tandem {
namespace {

/// The view that the caller's output was, or will be, made of behind this step.
torch::autograd::Edge edge_to_view(const PieceTarget& target, const RunningCall& call) {
  using torch::autograd::impl::gradient_edge;
  const size_t result = call.entry->plan().roles.outputs[target.index].base;
  torch::autograd::edge_list steps;
  for (auto at = gradient_edge(call.outputs[target.index]); at != gradient_edge(call.results[result]);
       at = at.function->next_edge(0))
    steps.push_back(at);
  return {steps[steps.size() - 1 - target.step].function, uint32_t(target.result)};
}

torch::autograd::Edge edge_to(const PieceTarget& target, const RunningCall& call) {
  using Kind = PieceTarget::Kind;
  if (target.kind == Kind::Input) return torch::autograd::impl::gradient_edge(call.inputs[target.index]);
  if (target.kind == Kind::Output) return edge_to_view(target, call);
  const PieceSource& source = call.entry->pieces().sources[target.index];
  if (source.kind == PieceSource::Kind::Result)
    return torch::autograd::impl::gradient_edge(
        call.results[call.entry->plan().differentiable[source.index]]);
  const auto& pieces = call.entry->pieces().all;
  size_t p = 0;
  while (target.index >= pieces[p].first_source + pieces[p].sources) ++p;
  return {call.nodes[p], uint32_t(target.index - pieces[p].first_source)};
}

torch::autograd::edge_list edges_of(const Piece& piece, const RunningCall& call) {
  torch::autograd::edge_list edges;
  edges.reserve(piece.leaves);
  for (size_t i : piece.inputs)
    edges.push_back(torch::autograd::impl::gradient_edge(call.inputs[call.entry->plan().gradient_inputs[i]]));
  for (size_t c : piece.crossings) edges.push_back(edge_to(call.entry->pieces().crossings[c].target, call));
  return edges;
}

}  // namespace

void attach_compiled_nodes(RunningCall& call) {
  const Entry& entry = *call.entry;
  const Pieces& pieces = entry.pieces();
  for (size_t p = 0; p < pieces.all.size(); ++p) {
    const Piece& piece = pieces.all[p];
    torch::autograd::edge_list beyond;
    for (const PieceTarget& target : piece.beyond) beyond.push_back(edge_to(target, call));
    auto node = make_node<CompiledNode>(call.entry, call.entry->first_derivative(), p, edges_of(piece, call),
                                        std::move(beyond));
    for (size_t s = piece.first_source; s < piece.first_source + piece.sources; ++s) {
      const PieceSource& source = pieces.sources[s];
      if (source.kind == PieceSource::Kind::Result)
        node->attach(call.results[entry.plan().differentiable[source.index]]);
      if (source.kind == PieceSource::Kind::Term) node->add_input_metadata(entry.sources()[s]);
    }
    call.nodes.emplace_back(std::move(node));
    if (!piece.output_steps.empty()) make_outputs(call, piece.output_steps);
  }
}

void attach_to_view(RunningCall& call, size_t output) {
  static_cast<CompiledNode&>(*call.nodes[call.entry->pieces().piece_of_output.at(output)])
      .attach(call.outputs[output]);
}

void save_values(RunningCall& call) {
  share_versions(call.entry->first_derivative(), call.inputs, call.results, call.saved);
  for (const NodePtr& node : call.nodes) static_cast<CompiledNode&>(*node).save(call.saved, call.results);
  call.saved.clear();
}

}  // namespace tandem
