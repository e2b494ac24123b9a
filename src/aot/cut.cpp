// Where the history of a traced function is cut into its pieces.
#include <torch/csrc/autograd/variable.h>

#include <limits>
#include <map>
#include <set>

#include "aot/joint.h"
#include "aot/visible.h"
#include "base/history.h"
#include "graph/vocabulary.h"
#include "trace/boundaries.h"
#include "trace/reentrant.h"

namespace tandem {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::impl::gradient_edge;

/// Brings gradients to where the edges of a node led that is not here: one of another piece, or the view by
/// which the caller has a result. It runs when that node would have run, so that gradients are added in
/// eager's order. It may wait for another one besides, which gives it nothing.
struct Term : torch::autograd::Node {
  using Node::Node;
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    gradients.resize(num_outputs());
    return std::move(gradients);
  }
  std::string name() const override { return "tandem::Term"; }
};

TensorMeta meta_at(const Edge& edge) {
  const auto& known = edge.function->input_metadata(edge.input_nr);
  TensorMeta meta;
  meta.dtype = known.dtype().toScalarType();
  meta.device = known.device();
  const auto sizes = known.shape_as_dim_vector();
  for (const c10::SymInt& size : sizes) meta.sizes.push_back(size.expect_int());
  meta.strides = dense_strides(meta.sizes);
  return meta;
}

/// Of a term: its piece, and the node whose place it takes.
using Place = std::pair<size_t, const torch::autograd::Node*>;

class Cutter {
 public:
  Cutter(Traced& traced, const Plan& plan, const Pieces& pieces)
      : traced_(traced),
        tracer_(*traced.tracer),
        plan_(plan),
        pieces_(pieces),
        piece_of_(std::make_shared<const std::unordered_map<const torch::autograd::Node*, size_t>>(
            pieces.piece_of)) {}

  Order run() {
    make_terms();
    for (const PieceSource& source : pieces_.sources) add_source(source);
    for (auto& [earlier, later] : waiting_)
      earlier->add_next_edge({later, later->add_input_metadata(torch::autograd::Node::undefined_input())});
    for (size_t p = 0; p < pieces_.all.size(); ++p) add_part(p);
    if (tracer_.met_own_code()) find_own_code();
    return std::move(order_);
  }

 private:
  /// The node in whose place a source has a term, and the piece that the term belongs to.
  std::optional<Place> place_of(const PieceSource& source) const {
    if (source.kind == PieceSource::Kind::Term) {
      const Crossing& crossing = pieces_.crossings[source.index];
      return Place{pieces_.piece_of.at(crossing.to.function.get()), crossing.from.get()};
    }
    const auto* view =
        source.kind == PieceSource::Kind::Result ? only_view_of(traced_, plan_, source.index) : nullptr;
    if (!view) return std::nullopt;
    const at::Tensor& result = plan_.tangent_sources[source.index];
    return Place{pieces_.piece_of.at(gradient_edge(result).function.get()), view};
  }

  /// A node may have waited for one with a lower number. What stands for the two runs at the turn of the
  /// lower one, in their order.
  void make_terms() {
    std::unordered_map<const torch::autograd::Node*, std::set<size_t>> places;
    for (const PieceSource& source : pieces_.sources)
      if (auto place = place_of(source)) places[place->second].insert(place->first);
    if (places.empty()) return;
    Tensors ends = roots_of(plan_);
    for (const at::Tensor& output : traced_.outputs)
      if (output.defined() && output.grad_fn()) ends.push_back(output);
    std::map<std::pair<size_t, uint64_t>, NodePtr> last;  // by piece and turn
    uint64_t turn = std::numeric_limits<uint64_t>::max();
    for (const torch::autograd::Node* node : nodes_in_order(ends)) {
      turn = std::min(turn, node->sequence_nr());
      const auto pieces = places.find(node);
      if (pieces == places.end()) continue;
      for (size_t piece : pieces->second) {
        NodePtr& before = last[{piece, turn}];
        NodePtr& term = terms_[{piece, node}];
        term = make_node<Term>(before ? node->sequence_nr() : turn, torch::autograd::edge_list());
        if (before) waiting_.emplace_back(before, term);
        before = term;
      }
    }
  }

  void add_source(const PieceSource& source) {
    const auto place = place_of(source);
    if (source.kind == PieceSource::Kind::Term) {
      const Edge& to = pieces_.crossings[source.index].to;
      order_.sources.push_back(begin_at(terms_.at(*place), to, meta_at(to)));
      order_.sole_views.emplace_back();
      return;
    }
    const at::Tensor& result = plan_.tangent_sources[source.index];
    order_.sources.push_back(place ? begin_at(terms_.at(*place), gradient_edge(result),
                                              tracer_.graph().meta(tracer_.value_of(result)))
                                   : result);
    order_.sole_views.push_back(plan_.sole_views[source.index]);
  }

  /// A gradient that arrives at what this gives goes through the term.
  at::Tensor begin_at(const NodePtr& term, const Edge& to, const TensorMeta& meta) {
    at::Tensor begin = tracer_.add_end(meta);
    term->add_next_edge(to);
    torch::autograd::impl::set_gradient_edge(begin, {term, term->add_input_metadata(begin)});
    return begin;
  }

  void add_part(size_t p) {
    const Piece& piece = pieces_.all[p];
    for (size_t i : piece.inputs) order_.leaves.push_back(leaf(plan_.gradient_inputs[i]));
    for (size_t c : piece.crossings) {
      const Crossing& crossing = pieces_.crossings[c];
      order_.leaves.push_back(tracer_.add_end(meta_at(crossing.to)).set_requires_grad(true));
      redirect(*crossing.from, crossing.edge, gradient_edge(order_.leaves.back()));
    }
    OrderPart part{piece.first_source, piece.sources, piece.first_leaf, piece.leaves};
    for (const PieceTarget& target : piece.beyond)
      if (target.kind == PieceTarget::Kind::Input) part.beyond.push_back(leaf(target.index));
    if (!piece.crossings.empty() || !piece.own.empty()) add_elsewhere(p, part);
    order_.parts.push_back(std::move(part));
  }

  void add_elsewhere(size_t p, OrderPart& part) {
    Elsewhere elsewhere{{}, piece_of_, p, {}};
    for (const at::Tensor& input : part.beyond) elsewhere.inputs.insert(gradient_edge(input).function.get());
    auto end_at = [&](const Edge& point) {
      part.beyond.push_back(tracer_.add_end(meta_at(point)).set_requires_grad(true));
      elsewhere.ends.emplace(point, gradient_edge(part.beyond.back()));
    };
    for (size_t c : pieces_.all[p].points) end_at(pieces_.crossings[c].to);
    for (size_t s : pieces_.all[p].own) end_at(gradient_edge(order_.sources[s]));
    part.elsewhere = std::make_shared<const Elsewhere>(std::move(elsewhere));
  }

  void find_own_code() {
    for (const auto& [node, piece] : *piece_of_)
      if (runs_own_code(const_cast<torch::autograd::Node&>(*node)) && !is_boundary(*node))
        order_.parts[piece].runs_own_code = true;
    auto has_any = [](const OrderPart& part) { return part.runs_own_code; };
    if (std::none_of(order_.parts.begin(), order_.parts.end(), has_any)) return;
    find_reentrant();
    for (OrderPart& part : order_.parts)
      for (size_t s = 0; s < part.sources; ++s) part.reaches.push_back(leaves_behind(part, s));
  }

  void find_reentrant() {
    for (const auto& [node, piece] : *piece_of_) {
      const auto arguments = arguments_of_reentrant(*node);
      if (!arguments) continue;
      OrderPart& part = order_.parts[piece];
      const edge_list& edges = node->next_edges();
      const auto first_leaf = edges.begin() + int64_t(*arguments);
      const auto behind = nodes_behind(edge_list(edges.begin(), first_leaf)),
                 own = nodes_behind(edge_list(first_leaf, edges.end()));
      OrderPart::Reentrant& found = part.reentrant.emplace_back();
      for (size_t s = part.first_source; s < part.first_source + part.sources; ++s)
        found.sources.push_back(numbered_nodes_behind({order_.sources[s]}).numbers.count(node) > 0);
      for (size_t l = part.first_leaf; l < part.first_leaf + part.leaves; ++l) {
        const auto* end = gradient_edge(order_.leaves[l]).function.get();
        found.behind.push_back(behind.contains(end));
        found.own.push_back(own.contains(end));
      }
    }
  }

  /// As eager has it, where a reentrant checkpoint leads to its arguments alone.
  static std::set<const torch::autograd::Node*> nodes_behind(const edge_list& edges) {
    std::set<const torch::autograd::Node*> seen;
    std::vector<const torch::autograd::Node*> waiting;
    auto visit = [&](const Edge& edge) {
      if (edge.function && seen.insert(edge.function.get()).second) waiting.push_back(edge.function.get());
    };
    for (const Edge& edge : edges) visit(edge);
    while (!waiting.empty()) {
      const auto* node = waiting.back();
      waiting.pop_back();
      const size_t count = arguments_of_reentrant(*node).value_or(node->num_outputs());
      for (size_t e = 0; e < count; ++e) visit(node->next_edge(e));
    }
    return seen;
  }

  std::vector<bool> leaves_behind(const OrderPart& part, size_t source) const {
    const NumberedNodes behind = numbered_nodes_behind({order_.sources[part.first_source + source]});
    std::vector<bool> found;
    for (size_t l = part.first_leaf; l < part.first_leaf + part.leaves; ++l)
      found.push_back(behind.numbers.count(gradient_edge(order_.leaves[l]).function.get()) > 0);
    return found;
  }

  const at::Tensor& leaf(size_t input) const { return tracer_.inputs()[input].leaf; }

  const Traced& traced_;
  Tracer& tracer_;
  const Plan& plan_;
  const Pieces& pieces_;
  const std::shared_ptr<const std::unordered_map<const torch::autograd::Node*, size_t>> piece_of_;
  std::map<Place, NodePtr> terms_;
  std::vector<std::pair<NodePtr, NodePtr>> waiting_;  ///< the second one for the first
  Order order_;
};

}  // namespace

Order cut_into_pieces(Traced& traced, const Plan& plan, const Pieces& pieces) {
  return Cutter(traced, plan, pieces).run();
}

size_t part_of(const std::vector<OrderPart>& parts, const BackwardVariant& variant) {
  for (size_t p = 0; p < parts.size(); ++p)
    for (size_t s = 0; s < parts[p].sources; ++s)
      if (variant.tangents[parts[p].first_source + s]) return p;
  return 0;
}

BackwardVariant expected_of(const OrderPart& part, const BackwardVariant& all) {
  BackwardVariant expected = all;
  for (size_t s = 0; s < all.tangents.size(); ++s)
    if (s < part.first_source || s >= part.first_source + part.sources) expected.tangents[s].reset();
  for (size_t l = 0; l < all.wanted.size(); ++l)
    if (l < part.first_leaf || l >= part.first_leaf + part.leaves) expected.wanted[l] = false;
  return expected;
}

}  // namespace tandem
