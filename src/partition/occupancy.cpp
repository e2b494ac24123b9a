#include "partition/occupancy.h"

#include <algorithm>

#include "graph/by_storage.h"
#include "graph/in_place_adds.h"
#include "graph/uses.h"
#include "partition/workspace.h"

namespace tandem {

Footprint::Footprint(const Graph& graph, const GivenBytes& given) : stretches_(graph.value_count(), none) {
  find_touched(graph);
  find_inputs(graph, given);
  find_takers(graph);
  workspace_.reserve(graph.nodes().size());
  for (const Node& node : graph.nodes()) workspace_.push_back(workspace_bytes(graph, node));
}

void Footprint::find_touched(const Graph& graph) {
  ByStorage<int32_t> by_storage(graph, none);
  auto see = [&](Value v) {
    int32_t& known = stretches_[size_t(v.id)];
    if (known != none) return uint32_t(known);
    const TensorMeta& meta = graph.meta(v);
    int32_t alone = none, &stretch = meta.storage < 0 ? alone : by_storage[meta.storage];
    if (stretch == none) {
      stretch = int32_t(bytes_.size());
      bytes_.push_back(0);
      uses_.push_back(0);
    }
    bytes_[size_t(stretch)] = std::max(bytes_[size_t(stretch)], meta.storage_bytes());
    return uint32_t(known = stretch);
  };
  first_touched_.reserve(graph.nodes().size() + 1);
  for (const Node& node : graph.nodes()) {
    const size_t first = touched_.size();
    first_touched_.push_back(first);
    auto touch = [&](Value v) {
      const uint32_t stretch = see(v);
      if (std::find(touched_.begin() + int64_t(first), touched_.end(), stretch) != touched_.end()) return;
      touched_.push_back(stretch);
      ++uses_[stretch];
    };
    for_each_argument(node, touch);
    for_each_result(node, touch);
  }
  first_touched_.push_back(touched_.size());
  for (Value v : graph.outputs())
    if (v) ++uses_[see(v)];
  is_there_.resize(bytes_.size());
}

/// Inputs that nothing reads lie nowhere.
void Footprint::find_inputs(const Graph& graph, const GivenBytes& given) {
  auto belongs_to_others = [&](Value v) {
    if (stretches_[size_t(v.id)] == none) return;
    is_there_[stretch(v)] = true;
    bytes_[stretch(v)] = 0;
  };
  for (Value v : graph.inputs()) belongs_to_others(v);
  for (const auto& constant : graph.constants()) belongs_to_others(constant.first);
  for (const auto& [input, bytes] : given)
    if (stretches_[size_t(input.id)] != none) bytes_[stretch(input)] = bytes;
}

void Footprint::find_takers(const Graph& graph) {
  const InPlaceAdds adds(graph, last_reads(graph));
  taken_.assign(graph.nodes().size(), none);
  for (size_t n = 0; n < taken_.size(); ++n)
    if (const auto target = adds.target(n))
      taken_[n] = int32_t(stretch(std::get<Value>(graph.nodes()[n].arguments[*target])));
}

Occupancy::Occupancy(const Footprint& of, int64_t live)
    : of_(of), is_there_(of.are_there()), uses_left_(of.uses()), live_(live), highest_(live) {}

Occupancy::Change Occupancy::change(size_t node) const {
  int64_t made = 0, freed = 0;
  for (const uint32_t stretch : of_.touched(node)) {
    if (!is_there_[stretch]) made += of_.bytes(stretch);
    if (uses_left_[stretch] == 1) freed += of_.bytes(stretch);
  }
  const int32_t taken = of_.taken(node);
  const bool is_taken = taken != Footprint::none && uses_left_[size_t(taken)] == 1;
  return {(is_taken ? 0 : made) + of_.workspace(node), made - freed};
}

void Occupancy::run(size_t node) {
  const Change found = change(node);
  highest_ = std::max(highest_, live_ + found.most);
  live_ += found.grows;
  for (const uint32_t stretch : of_.touched(node)) {
    is_there_[stretch] = true;
    --uses_left_[stretch];
  }
}

}  // namespace tandem
