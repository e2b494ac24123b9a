#include "loops/candidates.h"

#include <algorithm>

#include "graph/uses.h"
#include "loops/anchors.h"
#include "loops/arrange.h"
#include "loops/cost.h"
#include "loops/nodes.h"
#include "loops/twins.h"

namespace tandem::loops {
namespace {

/// With more, pointers no longer fit the registers.
constexpr size_t most_buffers = 28;

std::vector<bool> for_loops(const Graph& graph) {
  std::vector<bool> found;
  for (const Node& node : graph.nodes()) found.push_back(loops::is_for_loops(graph, node));
  return found;
}

}  // namespace

Candidates::Candidates(const Graph& graph, int64_t threads)
    : graph_(graph),
      threads_(threads),
      anchors_(anchors(graph)),
      makers_(makers(graph)),
      is_for_loops_(for_loops(graph)),
      twins_(twins(graph, is_for_loops_)),
      source_{graph_, anchors_, makers_, twins_},
      readers_(graph.value_count()),
      is_kept_(graph.value_count()) {
  find_readers();
  for (const Node& node : graph.nodes())
    for (const auto& [before, after] : node.writes) written_.insert(graph.meta(before).storage);
}

bool Candidates::reads_written_memory(int32_t node) const {
  bool found = false;
  for_each_argument(nodes()[size_t(node)],
                    [&](Value v) { found = found || written_.contains(graph_.meta(v).storage); });
  return found;
}

std::optional<Candidate> Candidates::candidate(std::vector<int32_t> members) const {
  const std::vector<Value> stored = wanted(members);
  return candidate(std::move(members), stored);
}

std::optional<Candidate> Candidates::candidate(std::vector<int32_t> members,
                                               const std::vector<Value>& stored) const {
  if (stored.empty()) return std::nullopt;
  std::vector<Draft> parts = draft(source_, members, stored);
  for (const Draft& part : parts)
    if (part.repeats > 0 || part.loads.size() + part.stores.size() > most_buffers) return std::nullopt;
  if (parts.empty()) return std::nullopt;
  const bool is_put_together = parts.size() > 1;
  std::optional<Fused> fused = arrange(graph_, std::move(parts), threads_);
  if (!fused) return std::nullopt;
  const bool is_for_libtorch = is_put_together && only_moves(*fused);
  const double time = is_for_libtorch ? nanoseconds_of_call(*fused) : nanoseconds(*fused);
  return Candidate{std::move(members), std::move(*fused), time};
}

bool Candidates::is_view(const Node& node) const {
  bool views = true, any = false;
  for_each_result(node, [&](Value v) {
    any = true;
    views = views && anchors_[v.id] != v;
  });
  return any && views;
}

void Candidates::find_readers() {
  for (Value output : graph_.outputs())
    if (output) is_kept_[anchors_[output.id].id] = true;
  for (size_t n = 0; n < nodes().size(); ++n) {
    const Node& node = nodes()[n];
    if (is_view(node)) continue;
    const bool loops = is_for_loops_[n];
    for_each_argument(node, [&](Value v) {
      const Value anchor = anchors_[v.id];
      if (loops)
        readers_[anchor.id].push_back(int32_t(n));
      else
        is_kept_[anchor.id] = true;
    });
  }
}

std::vector<Value> Candidates::wanted(const std::vector<int32_t>& members) const {
  std::vector<Value> found;
  for (int32_t member : members) {
    const Value made = result(member);
    const auto& readers = readers_[made.id];
    if (is_kept_[made.id] || std::any_of(readers.begin(), readers.end(), [&](int32_t reader) {
          return !std::binary_search(members.begin(), members.end(), reader);
        }))
      found.push_back(made);
  }
  return found;
}

std::vector<int32_t> merged(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  std::vector<int32_t> both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace tandem::loops
