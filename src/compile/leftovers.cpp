#include "compile/leftovers.h"

#include "graph/uses.h"

namespace tandem {
namespace {

Bits set_of(const std::vector<bool>& flags) {
  Bits set(flags.size());
  for (size_t i = 0; i < flags.size(); ++i)
    if (flags[i]) set.insert(i);
  return set;
}

/// For each value the tangents that it is computed from.
std::vector<Bits> tangents_behind(const Graph& graph, size_t saved) {
  const size_t count = graph.inputs().size() - saved;
  std::vector<Bits> behind(graph.value_count(), Bits(count));
  for (size_t t = 0; t < count; ++t) behind[size_t(graph.inputs()[saved + t].id)].insert(t);
  for (const Node& node : graph.nodes()) {
    Bits all(count);
    for_each_argument(node, [&](Value read) { all |= behind[size_t(read.id)]; });
    for_each_result(node, [&](Value made) { behind[size_t(made.id)] |= all; });
  }
  return behind;
}

}  // namespace

Between asked_of(const BackwardVariant& variant) {
  Between asked{Bits(variant.tangents.size()), set_of(variant.wanted)};
  for (size_t t = 0; t < variant.tangents.size(); ++t)
    if (variant.tangents[t]) asked.sources.insert(t);
  return asked;
}

Leftovers::Leftovers(std::vector<Between> saving, const Graph& backward, size_t saved)
    : saving_(std::move(saving)),
      tangents_(backward.inputs().size() - saved),
      gradients_(backward.outputs().size()) {
  const std::vector<Bits> behind = tangents_behind(backward, saved);
  std::vector<Gradients> leads_to(backward.value_count(), Gradients(tangents_, Bits(gradients_)));
  // What no tangent has a part in takes part whichever arrives.
  auto add = [this](Gradients& to, const Bits& tangents, const Gradients& gradients) {
    for (size_t t = 0; t < tangents_; ++t)
      if (tangents.empty() || tangents.has(t)) to[t] |= gradients[t];
  };
  for (size_t g = 0; g < gradients_; ++g) {
    const Value made = backward.outputs()[g];
    Bits itself(gradients_);
    itself.insert(g);
    if (made) add(leads_to[size_t(made.id)], behind[size_t(made.id)], Gradients(tangents_, itself));
  }
  for (auto node = backward.nodes().rbegin(); node != backward.nodes().rend(); ++node) {
    Bits tangents(tangents_);
    for_each_argument(*node, [&](Value read) { tangents |= behind[size_t(read.id)]; });
    Gradients gradients(tangents_, Bits(gradients_));
    bool has_results = false;
    for_each_result(*node, [&](Value made) {
      has_results = true;
      add(gradients, Bits(), leads_to[size_t(made.id)]);
    });
    if (!has_results) gradients.assign(tangents_, Bits::all(gradients_));
    for_each_argument(*node, [&](Value read) { add(leads_to[size_t(read.id)], tangents, gradients); });
  }
  const Gradients possible = gradients_of_tangents(backward, behind);
  const std::vector<int32_t> reads = read_counts(backward);
  for (size_t s = 0; s < saved; ++s) {
    const size_t id = size_t(backward.inputs()[s].id);
    read_for_.push_back(reads[id] > 0 ? leads_to[id] : possible);
  }
}

Leftovers::Gradients Leftovers::gradients_of_tangents(const Graph& backward,
                                                      const std::vector<Bits>& behind) const {
  Gradients found(tangents_, Bits(gradients_));
  for (size_t g = 0; g < gradients_; ++g)
    for (size_t t = 0; t < tangents_; ++t)
      if (Value made = backward.outputs()[g]; made && behind[size_t(made.id)].has(t)) found[t].insert(g);
  return found;
}

Leftovers::Gradients Leftovers::refused(const std::vector<Between>& done) const {
  Gradients refused(tangents_, Bits(gradients_));
  for (const Between& node : saving_) {
    if (std::none_of(done.begin(), done.end(), [&](const Between& asked) {
          return node.sources.meets(asked.sources) && node.inputs.meets(asked.inputs);
        }))
      continue;
    for (size_t t = 0; t < tangents_; ++t)
      if (node.sources.has(t)) refused[t] |= node.inputs;
  }
  return refused;
}

bool Leftovers::refuse(const std::vector<Between>& done, const Between& next) const {
  const Gradients gradients = refused(done);
  for (size_t t = 0; t < tangents_; ++t)
    if (next.sources.has(t) && gradients[t].meets(next.inputs)) return true;
  return false;
}

std::vector<size_t> Leftovers::unreadable(const std::vector<Between>& done, const std::vector<size_t>& saved,
                                          const OrderPart& part) const {
  const Gradients gradients = refused(done);
  std::vector<size_t> found;
  for (size_t s : saved) {
    bool is_readable = false;
    for (size_t t = part.first_source; t < part.first_source + part.sources; ++t)
      is_readable = is_readable || !read_for_[s][t].is_within(gradients[t]);
    if (!is_readable) found.push_back(s);
  }
  return found;
}

}  // namespace tandem
