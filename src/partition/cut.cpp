#include "partition/cut.h"

#include <tandem/error.h>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>

namespace tandem {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct Vertex {
  boost::default_color_type colour;
  long distance;
  Traits::edge_descriptor predecessor;
};
struct Edge {
  int64_t capacity, residual;
  Traits::edge_descriptor reverse;
};
using Network = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Vertex, Edge>;

constexpr int64_t unbounded = int64_t(1) << 60;

/// Each block is an edge whose capacity is what it takes to keep it. What flows is need: from what the
/// backward cannot make itself, through what it can, to what it reads.
class Flow {
 public:
  Flow(const Blocks& blocks, const std::vector<bool>& may_repeat)
      : blocks_(blocks), may_repeat_(may_repeat), network_(2 * blocks.size() + 2) {
    for (size_t b = 0; b < blocks.size(); ++b) {
      connect(before(b), behind(b), price(b));
      if (!may_repeat[b]) connect(source(), before(b), unbounded);
      if (blocks[b].is_needed) connect(behind(b), sink(), unbounded);
      if (may_repeat[b])
        for (int32_t read : blocks[b].reads) connect(behind(size_t(read)), before(b), unbounded);
    }
  }

  std::vector<bool> cut() {
    const int64_t flow = boost::boykov_kolmogorov_max_flow(
        network_, get(&Edge::capacity, network_), get(&Edge::residual, network_),
        get(&Edge::reverse, network_), get(&Vertex::predecessor, network_), get(&Vertex::colour, network_),
        get(&Vertex::distance, network_), get(boost::vertex_index, network_), source(), sink());
    if (flow >= unbounded) refuse();
    const std::vector<bool> is_made_by_backward = reaching_the_sink();
    std::vector<bool> kept(blocks_.size());
    for (size_t b = 0; b < kept.size(); ++b)
      kept[b] = !is_made_by_backward[before(b)] && is_made_by_backward[behind(b)];
    return kept;
  }

 private:
  static size_t before(size_t block) { return 2 * block; }
  static size_t behind(size_t block) { return 2 * block + 1; }
  size_t source() const { return 2 * blocks_.size(); }
  size_t sink() const { return source() + 1; }

  /// A little more than its bytes, so that of two cuts of equal size the one with fewer blocks is taken.
  int64_t price(size_t b) const {
    if (blocks_[b].is_kept_anyway) return 0;
    return blocks_[b].may_save ? blocks_[b].bytes * 16 + 1 : unbounded;
  }

  void connect(size_t from, size_t to, int64_t capacity) {
    const auto there = add_edge(from, to, Edge{capacity, 0, {}}, network_).first;
    const auto back = add_edge(to, from, Edge{0, 0, {}}, network_).first;
    network_[there].reverse = back;
    network_[back].reverse = there;
  }

  /// Of all smallest cuts this is the one nearest to the backward.
  std::vector<bool> reaching_the_sink() const {
    std::vector<bool> reaches(num_vertices(network_));
    std::vector<size_t> waiting{sink()};
    reaches[sink()] = true;
    while (!waiting.empty()) {
      const size_t to = waiting.back();
      waiting.pop_back();
      for (auto [edge, end] = out_edges(to, network_); edge != end; ++edge) {
        const size_t from = target(*edge, network_);
        if (reaches[from] || network_[network_[*edge].reverse].residual <= 0) continue;
        reaches[from] = true;
        waiting.push_back(from);
      }
    }
    return reaches;
  }

  /// Names a way from what cannot be computed again to what the backward reads on which nothing can be kept.
  [[noreturn]] void refuse() const {
    std::vector<bool> met(blocks_.size());
    for (size_t b = 0; b < blocks_.size(); ++b)
      if (blocks_[b].is_needed && !met[b])
        if (std::string way = endless_way(b, met); !way.empty())
          throw Error("no cut between forward and backward will do: the backward reads " + way);
    throw Error("no cut between forward and backward will do: more bytes would be kept than can be counted");
  }

  std::string endless_way(size_t b, std::vector<bool>& met) const {
    met[b] = true;
    if (blocks_[b].is_kept_anyway || blocks_[b].may_save) return {};
    const std::string here =
        blocks_.describe(b) + ", which cannot be kept since it is written, or the caller has it";
    if (!may_repeat_[b]) return here + ", and which cannot be computed again";
    for (int32_t read : blocks_[b].reads)
      if (!met[size_t(read)])
        if (const std::string way = endless_way(size_t(read), met); !way.empty())
          return here + ", and is computed from " + way;
    return {};
  }

  const Blocks& blocks_;
  const std::vector<bool>& may_repeat_;
  Network network_;
};

}  // namespace

std::vector<bool> smallest_cut(const Blocks& blocks, const std::vector<bool>& may_repeat) {
  return Flow(blocks, may_repeat).cut();
}

}  // namespace tandem
