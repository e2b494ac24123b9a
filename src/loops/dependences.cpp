#include "loops/dependences.h"

#include <unordered_map>

#include "graph/draws.h"
#include "graph/uses.h"
#include "loops/anchors.h"
#include "ops/facts.h"
#include "ops/versions.h"

namespace tandem::loops {
namespace {

bool has_its_turn(const Node& node) {
  return facts(node.op).side_effect || draws_live(node) || is_foreign(node.op);
}

class Following {
 public:
  Following(const Graph& graph, const std::vector<bool>& reads_memory)
      : graph_(graph),
        reads_memory_(reads_memory),
        anchors_(anchors(graph)),
        makers_(makers(graph)),
        all_(graph.nodes().size()) {
    for (const Node& node : graph.nodes())
      for (const auto& [before, after] : node.writes) written_[graph.meta(before).storage];
  }

  std::vector<std::vector<int32_t>> run() {
    for (size_t n = 0; n < all_.size(); ++n) add(graph_.nodes()[n], int32_t(n));
    return std::move(all_);
  }

 private:
  void add(const Node& node, int32_t number) {
    const bool reads_memory = reads_memory_[size_t(number)];
    for_each_argument(node,
                      [&](Value v) { follow(makers_[(reads_memory ? anchors_[v.id] : v).id], number); });
    for (const auto& [before, after] : node.writes) {
      auto& readers = written_[graph_.meta(before).storage];
      for (int32_t reader : readers) follow(reader, number);
      readers.clear();
      readers.push_back(number);
    }
    if (!written_.empty())
      for_each_argument(node, [&](Value v) {
        if (auto found = written_.find(graph_.meta(v).storage); found != written_.end()) {
          for (int32_t other : found->second)
            if (!graph_.nodes()[size_t(other)].writes.empty()) follow(other, number);
          found->second.push_back(number);
        }
      });
    if (!has_its_turn(node)) return;
    follow(last_in_turn_, number);
    last_in_turn_ = number;
  }

  void follow(int32_t before, int32_t node) {
    if (before < 0 || before == node) return;
    auto& followers = all_[size_t(before)];
    if (followers.empty() || followers.back() != node) followers.push_back(node);
  }

  const Graph& graph_;
  const std::vector<bool>& reads_memory_;
  const std::vector<Value> anchors_;
  const std::vector<int32_t> makers_;
  std::vector<std::vector<int32_t>> all_;
  /// by storages that are written anywhere: who read or wrote them since they were written last
  std::unordered_map<int32_t, std::vector<int32_t>> written_;
  int32_t last_in_turn_ = no_node;
};

}  // namespace

std::vector<std::vector<int32_t>> followers(const Graph& graph, const std::vector<bool>& reads_memory) {
  return Following(graph, reads_memory).run();
}

}  // namespace tandem::loops
