#include "backends/fused_graph.h"

#include <tandem/error.h>
#include <tandem/passes.h>
#include <torch/library.h>

#include <queue>
#include <sstream>
#include <unordered_map>

#include "loops/dependences.h"

namespace tandem {

// Only a graph that `fuse` made calls it, and its interpreter has a call of its own for it.
TORCH_LIBRARY_FRAGMENT(tandem, library) { library.def("fused(Tensor[] tensors, int group) -> Tensor[]"); }

const c10::OperatorHandle& fused_operator() {
  static const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow("tandem::fused", "");
  return op;
}

namespace {

/// Puts groups and single nodes in an order in which each runs behind what it waits for.
class Sequence {
 public:
  Sequence(const Graph& graph, const std::vector<loops::Group>& groups)
      : cluster_of_(graph.nodes().size()), followers_(loops::followers(graph, grouped(graph, groups))) {
    for (size_t n = 0; n < cluster_of_.size(); ++n) cluster_of_[n] = int32_t(n);
    for (const loops::Group& group : groups) {
      if (group.fused.launches.empty()) continue;
      const int32_t cluster = group.members.own.back();
      for (int32_t member : group.members.own) cluster_of_[size_t(member)] = cluster;
      for (int32_t borrowed : group.members.borrowed) borrowers_[borrowed].push_back(cluster);
    }
    waits_.resize(cluster_of_.size());
    members_.resize(cluster_of_.size());
    for (size_t n = 0; n < cluster_of_.size(); ++n) members_[size_t(cluster_of_[n])].push_back(int32_t(n));
    for (size_t n = 0; n < cluster_of_.size(); ++n)
      for_outer_followers(int32_t(n), [&](int32_t cluster) { ++waits_[size_t(cluster)]; });
  }

  /// Calls `emit` with the last node of each cluster.
  template <class Emit>
  void run(Emit&& emit) {
    std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
    for (size_t c = 0; c < members_.size(); ++c)
      if (!members_[c].empty() && waits_[c] == 0) ready.push(int32_t(c));
    while (!ready.empty()) {
      const int32_t cluster = ready.top();
      ready.pop();
      emit(cluster);
      for (int32_t member : members_[size_t(cluster)])
        for_outer_followers(member, [&](int32_t c) {
          if (--waits_[size_t(c)] == 0) ready.push(c);
        });
    }
  }

 private:
  static std::vector<bool> grouped(const Graph& graph, const std::vector<loops::Group>& groups) {
    std::vector<bool> found(graph.nodes().size());
    for (const loops::Group& group : groups)
      for (const auto* members : {&group.members.own, &group.members.borrowed})
        for (int32_t member : *members) found[size_t(member)] = true;
    return found;
  }

  template <class Visit>
  void for_outer_followers(int32_t node, Visit&& visit) const {
    const int32_t own = cluster_of_[size_t(node)];
    for (int32_t follower : followers_[size_t(node)]) {
      if (cluster_of_[size_t(follower)] != own) visit(cluster_of_[size_t(follower)]);
      if (const auto borrowing = borrowers_.find(follower); borrowing != borrowers_.end())
        for (int32_t cluster : borrowing->second)
          if (cluster != own) visit(cluster);
    }
  }

  std::vector<int32_t> cluster_of_;  ///< the last node of the group that a node is in, else itself
  std::unordered_map<int32_t, std::vector<int32_t>> borrowers_;  ///< clusters, by nodes that they borrow
  const std::vector<std::vector<int32_t>> followers_;
  std::vector<int32_t> waits_;
  std::vector<std::vector<int32_t>> members_;
};

Node call_of(const loops::Fused& group, size_t number) {
  Node node{fused_operator()};
  node.arguments = {group.inputs, c10::IValue(int64_t(number))};
  node.results = {group.outputs};
  return node;
}

}  // namespace

namespace {

/// Nothing where members of one group wait for each other by way of others.
std::optional<FusedGraph> with_groups(const Graph& graph, std::vector<loops::Group> groups) {
  FusedGraph fused{graph.without_nodes(), {}, {}};
  std::vector<int32_t> group_ending(graph.nodes().size(), -1);
  for (size_t g = 0; g < groups.size(); ++g)
    if (!groups[g].fused.launches.empty()) group_ending[size_t(groups[g].members.own.back())] = int32_t(g);
  size_t emitted = 0;
  Sequence(graph, groups).run([&](int32_t last) {
    const int32_t group = group_ending[size_t(last)];
    emitted += group < 0 ? 1 : groups[size_t(group)].members.own.size();
    fused.graph.add_node(group < 0 ? graph.nodes()[size_t(last)]
                                   : call_of(groups[size_t(group)].fused, size_t(group)));
  });
  if (emitted != graph.nodes().size()) return std::nullopt;
  for (loops::Group& group : groups) {
    fused.groups.push_back(std::move(group.fused));
    fused.members.push_back(std::move(group.members));
  }
  fused.graph = eliminate_dead_code(std::move(fused.graph));
  return fused;
}

}  // namespace

namespace {

FusedGraph grouped(const Graph& graph, int64_t threads, const std::vector<loops::Members>* known) {
  if (known)
    if (auto groups = loops::groups_of(graph, threads, *known))
      if (auto fused = with_groups(graph, std::move(*groups))) return std::move(*fused);
  auto fused = with_groups(graph, loops::groups(graph, threads));
  if (!fused)
    throw Error("groups of nodes wait for each other; please report the graph:\n" + graph.to_string());
  return std::move(*fused);
}

}  // namespace

FusedGraph fuse(const Graph& graph, int64_t threads, const std::vector<loops::Members>* known) {
  FusedGraph fused = grouped(graph, threads, known);
  fused.graph = put_side_by_side(std::move(fused.graph), threads, fused.side_by_side);
  return fused;
}

namespace {

void print_launch(std::ostream& out, const loops::Launch& launch) {
  const loops::Kernel& kernel = launch.kernel;
  const auto sizes = launch.shape.begin() + loops::shape_header;
  out << launch.units << " units of " << launch.shape[0] << " lanes, sizes";
  for (auto size = sizes; size != sizes + kernel.rank(); ++size) out << ' ' << *size;
  for (size_t b = 0; b < launch.buffers.size(); ++b) {
    static constexpr const char* names[] = {"input", "output", "scratch", "nothing"};
    const loops::Memory& memory = launch.buffers[b];
    out << "\n  buffer " << b << " is " << names[size_t(memory.of)] << ' ' << memory.index << " from "
        << memory.offset << ", strides";
    const auto strides = sizes + int64_t(b + 1) * kernel.rank();
    for (auto stride = strides; stride != strides + kernel.rank(); ++stride) out << ' ' << *stride;
  }
  out << '\n' << to_string(kernel);
}

}  // namespace

std::string to_string(const FusedGraph& fused) {
  std::ostringstream out;
  out << fused.graph.to_string();
  for (size_t g = 0; g < fused.groups.size(); ++g)
    for (const loops::Launch& launch : fused.groups[g].launches) {
      out << "\ngroup " << g << ": ";
      print_launch(out, launch);
    }
  for (size_t s = 0; s < fused.side_by_side.size(); ++s) {
    out << "\nside by side " << s << ":\n";
    for (const Graph& product : fused.side_by_side[s]) out << product.to_string();
  }
  return out.str();
}

}  // namespace tandem
