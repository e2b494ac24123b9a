#include "aot/pieces.h"

#include <torch/csrc/autograd/functions/tensor.h>
#include <torch/csrc/autograd/variable.h>

#include <map>
#include <numeric>

#include "aot/depths.h"
#include "aot/retained.h"
#include "aot/visible.h"
#include "base/history.h"

namespace tandem {
namespace {

using torch::autograd::Edge;
using GradNode = torch::autograd::Node;
using torch::autograd::impl::gradient_edge;

/// Numbers that are joined belong together.
class Groups {
 public:
  explicit Groups(size_t size) : parents_(size) { std::iota(parents_.begin(), parents_.end(), size_t(0)); }
  size_t of(size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }
  void join(size_t a, size_t b) { parents_[of(a)] = of(b); }

 private:
  std::vector<size_t> parents_;
};

class Finder {
 public:
  Finder(const Traced& traced, const Plan& plan)
      : traced_(traced), plan_(plan), roots_(roots_of(plan)), visible_(visible_points(traced, plan)) {
    for (const at::Tensor& root : roots_) ends_of_roots_.push_back(gradient_edge(root));
    for (size_t i : plan.gradient_inputs) ends_of_inputs_.push_back(end_of(traced.tracer->inputs()[i].leaf));
    for (GradNode* node : nodes_in_order(roots_)) history_.add(node);
    for (const Edge& end : ends_of_roots_) history_.add(end.function.get());
  }

  Pieces run() {
    find_cuts();
    refuse_gradients_retained_inside(traced_, plan_.roles, cuts_);
    measure();
    if (!cuts_.empty() && !can_be_cut()) {
      cuts_.clear();
      measure();
      refuse_gradients_retained_inside(traced_, plan_.roles, cuts_);
    }
    find_groups();
    number_pieces();
    for (size_t p = 0; p < found_.all.size(); ++p) describe(p);
    order_output_steps();
    return std::move(found_);
  }

 private:
  /// Of what the caller gets, that which others are computed from, as far as he can ask for their gradients.
  void find_cuts() {
    for (const GradNode* node : nodes_behind(reached_roots(traced_, plan_)))
      for (const Edge& edge : node->next_edges())
        if (auto point = visible_.find(edge); point != visible_.end()) cuts_.insert(*point);
  }

  /// Where the gradient of a cut arrives in turn.
  size_t landing(const PieceTarget& target) const {
    if (target.kind == PieceTarget::Kind::Source) return number_of_root(target.index);
    return number_of_root(*source_of(plan_, plan_.roles.outputs[target.index].base));
  }

  void measure() {
    landings_.clear();
    for (const auto& [edge, target] : cuts_) landings_.emplace(edge, landing(target));
    std::vector<size_t> roots;
    for (size_t s = 0; s < roots_.size(); ++s) roots.push_back(number_of_root(s));
    depths_ = find_depths(history_, roots, landings_);
  }

  std::optional<size_t> depth_of(size_t node) const { return depths_.of_nodes[node]; }

  /// A write to a part of a tensor gives the others that share its memory new histories, which what was saved
  /// of them may lead to in whatever piece. And a view may have another history than it had. A history that
  /// lies behind views made under no_grad alone is asked for nothing.
  bool can_be_cut() const {
    Tensors ends = traced_.outputs;
    for (const TracedInput& input : traced_.tracer->inputs()) ends.push_back(input.visible);
    for (const GradNode* node : nodes_behind(ends))
      if (dynamic_cast<const torch::autograd::CopySlices*>(node)) return false;
    for (size_t n = 0; n < history_.nodes.size(); ++n) {
      if (!depth_of(n)) continue;
      for (const Edge& edge : history_.nodes[n]->next_edges())
        if (auto cut = landings_.find(edge); cut != landings_.end() && *depth_of(cut->second) <= *depth_of(n))
          return false;
    }
    return true;
  }

  bool crosses(size_t from, const Edge& edge) const {
    return cuts_.count(edge) || depth_of(history_.number_of(edge)) != depth_of(from);
  }

  /// Pieces of one depth share neither nodes nor places that they lead to: there gradients are added in
  /// eager's order.
  void find_groups() {
    groups_.emplace(history_.nodes.size());
    std::map<std::pair<size_t, const GradNode*>, size_t> leads_to;
    for (size_t n = 0; n < history_.nodes.size(); ++n) {
      if (!depth_of(n)) continue;
      for (const Edge& edge : history_.nodes[n]->next_edges()) {
        if (!edge.function) continue;
        if (!crosses(n, edge))
          groups_->join(n, history_.number_of(edge));
        else
          groups_->join(n, leads_to.try_emplace({*depth_of(n), edge.function.get()}, n).first->second);
      }
    }
  }

  void number_pieces() {
    std::vector<size_t> firsts;  // of the nodes of each, sources first
    std::unordered_set<size_t> seen;
    auto note = [&](size_t node) {
      if (depth_of(node) && seen.insert(groups_->of(node)).second) firsts.push_back(node);
    };
    for (size_t s = 0; s < roots_.size(); ++s) note(number_of_root(s));
    for (size_t n = 0; n < history_.nodes.size(); ++n) note(n);
    std::stable_sort(firsts.begin(), firsts.end(),
                     [this](size_t a, size_t b) { return *depth_of(a) > *depth_of(b); });
    std::unordered_map<size_t, size_t> piece_of_group;
    for (size_t first : firsts) {
      depths_of_pieces_.push_back(*depth_of(first));
      piece_of_group.emplace(groups_->of(first), piece_of_group.size());
    }
    for (size_t n = 0; n < history_.nodes.size(); ++n)
      if (depth_of(n)) found_.piece_of.emplace(history_.nodes[n], piece_of_group.at(groups_->of(n)));
    found_.all.resize(firsts.size());
    for (const GradNode* node : history_.nodes)
      if (found_.piece_of.count(node)) note_crossings(*node);
    for (size_t i = 0; i < plan_.gradient_inputs.size(); ++i)
      if (auto piece = found_.piece_of.find(ends_of_inputs_[i].function.get());
          piece != found_.piece_of.end())
        found_.all[piece->second].inputs.push_back(i);
  }

  void note_crossings(const GradNode& node) {
    const size_t piece = found_.piece_of.at(&node);
    for (size_t e = 0; e < node.num_outputs(); ++e) {
      const Edge& edge = node.next_edge(e);
      if (!edge.function || !crosses(history_.numbers.at(&node), edge)) continue;
      const auto cut = cuts_.find(edge);
      // The source of a term gets its number when the sources are listed.
      const PieceTarget target =
          cut != cuts_.end() ? cut->second : PieceTarget{PieceTarget::Kind::Source, no_source};
      found_.all[piece].crossings.push_back(found_.crossings.size());
      found_.crossings.push_back({const_cast<GradNode&>(node).getptr(), e, edge, target});
    }
  }

  void describe(size_t p) {
    Piece& piece = found_.all[p];
    list_sources(p);
    piece.first_leaf = p == 0 ? 0 : found_.all[p - 1].first_leaf + found_.all[p - 1].leaves;
    piece.leaves = piece.inputs.size() + piece.crossings.size();
    list_beyond(piece);
  }

  void list_beyond(Piece& piece) {
    std::unordered_set<Edge> crossed;
    for (size_t c : piece.crossings)
      if (crossed.insert(found_.crossings[c].to).second && !is_end(found_.crossings[c].to))
        piece.points.push_back(c);
    for (size_t i = 0; i < plan_.gradient_inputs.size(); ++i)
      if (ends_of_inputs_[i].is_valid() &&
          (crossed.count(ends_of_inputs_[i]) || !found_.piece_of.count(ends_of_inputs_[i].function.get())))
        piece.beyond.push_back({PieceTarget::Kind::Input, plan_.gradient_inputs[i]});
    for (size_t c : piece.points) piece.beyond.push_back(found_.crossings[c].target);
  }

  void list_sources(size_t p) {
    Piece& piece = found_.all[p];
    auto& sources = found_.sources;
    piece.first_source = sources.size();
    auto add_tangents = [&](PieceSource::Kind kind, size_t first, size_t end) {
      for (size_t s = first; s < end; ++s) {
        if (found_.piece_of.at(ends_of_roots_[s].function.get()) != p) continue;
        for (Crossing& crossing : found_.crossings)
          if (cuts_.count(crossing.to) && crossing.target.kind == PieceTarget::Kind::Source &&
              cuts_.at(crossing.to).index == s)
            crossing.target.index = sources.size();
        const auto point = visible_.find(ends_of_roots_[s]);
        const bool is_apart = cuts_.count(ends_of_roots_[s]) || !piece.crossings.empty();
        if (is_apart && point != visible_.end() && point->second.kind == PieceTarget::Kind::Source)
          piece.own.push_back(sources.size());
        sources.push_back({kind, s});
      }
    };
    add_tangents(PieceSource::Kind::Result, 0, plan_.differentiable.size());
    for (size_t c = 0; c < found_.crossings.size(); ++c) {
      Crossing& crossing = found_.crossings[c];
      if (cuts_.count(crossing.to) || found_.piece_of.at(crossing.to.function.get()) != p) continue;
      crossing.target.index = sources.size();
      sources.push_back({PieceSource::Kind::Term, c});
    }
    add_tangents(PieceSource::Kind::View, plan_.differentiable.size(), roots_.size());
    piece.sources = sources.size() - piece.first_source;
  }

  /// Views that pieces lead to are made before these pieces, all others in the end.
  void order_output_steps() {
    const bool lead_to_views = std::any_of(
        found_.crossings.begin(), found_.crossings.end(),
        [](const Crossing& crossing) { return crossing.target.kind == PieceTarget::Kind::Output; });
    for (const OutputStep& step : plan_.output_steps)
      (lead_to_views ? steps_with(step) : found_.last_steps).push_back(step);
    for (size_t s = 0; s < found_.sources.size(); ++s) {
      if (found_.sources[s].kind != PieceSource::Kind::View) continue;
      for (size_t o = 0; o < traced_.outputs.size(); ++o)
        if (traced_.outputs[o].is_same(roots_[found_.sources[s].index]))
          found_.piece_of_output.emplace(o, piece_of_source(s));
    }
  }

  /// A view is made behind all pieces that are as deep as it is, since what is made first runs last.
  std::vector<OutputStep>& steps_with(const OutputStep& step) {
    const OutputRole& role = plan_.roles.outputs[step.output];
    const bool is_of_result = role.source == OutputSource::Fresh || role.source == OutputSource::ViewOfOutput;
    const auto source = source_of(plan_, role.base);
    if (!is_of_result || !source) return found_.last_steps;
    const size_t depth = depth_of_step(step, *source);
    size_t p = depths_of_pieces_.size();
    while (depths_of_pieces_[p - 1] < depth) --p;
    return found_.all[p - 1].output_steps;
  }

  size_t depth_of_step(const OutputStep& step, size_t source) const {
    const OutputRole& role = plan_.roles.outputs[step.output];
    const GradNode* const root = ends_of_roots_[source].function.get();
    const bool is_apart = role.tracked && !plan_.sole_views[source];
    const GradNode* node = is_apart ? traced_.outputs[step.output].grad_fn().get() : root;
    for (size_t later = is_apart && !role.same_as ? role.steps.size() : 0; later > step.step + 1; --later)
      node = node->next_edge(0).function.get();
    for (; node != root; node = node->next_edge(0).function.get())
      if (auto n = history_.numbers.find(node); n != history_.numbers.end() && depths_.of_views[n->second])
        return *depths_.of_views[n->second];
    return *depth_of(history_.numbers.at(root));
  }

  size_t piece_of_source(size_t source) const {
    size_t p = 0;
    while (source >= found_.all[p].first_source + found_.all[p].sources) ++p;
    return p;
  }

  /// None for an input that required no grad before it was written: gradients end at what was written.
  static Edge end_of(const at::Tensor& leaf) { return leaf.grad_fn() ? Edge() : gradient_edge(leaf); }
  bool is_end(const Edge& edge) const {
    return std::find(ends_of_inputs_.begin(), ends_of_inputs_.end(), edge) != ends_of_inputs_.end();
  }
  size_t number_of_root(size_t source) const { return history_.number_of(ends_of_roots_[source]); }

  static constexpr size_t no_source = size_t(-1);

  const Traced& traced_;
  const Plan& plan_;
  const Tensors roots_;  ///< what tangents arrive at
  const VisiblePoints visible_;
  HistoryOrder history_;
  torch::autograd::edge_list ends_of_roots_, ends_of_inputs_;
  VisiblePoints cuts_;
  Landings landings_;
  Depths depths_;
  std::optional<Groups> groups_;
  std::vector<size_t> depths_of_pieces_;  ///< never growing
  Pieces found_;
};

}  // namespace

Pieces find_pieces(const Traced& traced, const Plan& plan) {
  if (plan.tangent_sources.empty()) return {.last_steps = plan.output_steps};
  return Finder(traced, plan).run();
}

}  // namespace tandem
