#include "backends/direct_writes.h"

#include "graph/uses.h"

#include <unordered_map>

namespace tandem {
namespace {

bool is_named(const Node& node, const char* name) { return node.op.schema().name() == name; }

bool is_copy_back(const Node& node) { return node.writes.size() == 1 && is_named(node, "aten::copy_"); }

class DirectWrites {
 public:
  explicit DirectWrites(Graph& graph)
      : graph_(graph),
        reads_(read_counts(graph)),
        maker_(makers(graph)),
        dropped_(graph.nodes().size(), false) {
    const auto& nodes = graph.nodes();
    for (size_t n = 0; n < nodes.size(); ++n)
      for_each_argument(nodes[n], [&](Value v) {
        int32_t& last = last_read_of_storage_[graph.meta(v).storage];
        if (!is_copy_back(nodes[n])) last = int32_t(n);
      });
  }

  void run() {
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      if (is_copy_back(graph_.nodes()[n])) join(n);
    size_t n = 0;
    std::erase_if(graph_.nodes(), [&](const Node&) { return dropped_[n++]; });
  }

 private:
  void join(size_t copy_back) {
    const auto [input, last] = graph_.nodes()[copy_back].writes[0];
    const Value* contents = std::get_if<Value>(&graph_.nodes()[copy_back].arguments[1]);
    if (!contents || maker_[contents->id] < 0 || reads_[contents->id] != 1) return;
    const size_t writer = size_t(maker_[contents->id]);
    Node& node = graph_.nodes()[writer];
    auto write = std::find_if(node.writes.begin(), node.writes.end(),
                              [&](const auto& w) { return w.second == *contents; });
    if (write == node.writes.end()) return;
    const Value clone = write->first;
    if (maker_[clone.id] < 0 || reads_[clone.id] != 1 ||
        !is_named(graph_.nodes()[size_t(maker_[clone.id])], "aten::clone"))
      return;
    const Value* source = std::get_if<Value>(&graph_.nodes()[size_t(maker_[clone.id])].arguments[0]);
    if (!source || *source != input || !lie_alike(clone, input) ||
        last_read_of_storage_[graph_.meta(input).storage] > maker_[clone.id])
      return;
    for (Operand& argument : node.arguments)
      map_values(argument, [&](Value v) { return v == clone ? input : v; });
    *write = {input, last};
    dropped_[copy_back] = dropped_[size_t(maker_[clone.id])] = true;
  }

  bool lie_alike(Value a, Value b) const {
    return graph_.meta(a).sizes == graph_.meta(b).sizes && graph_.meta(a).strides == graph_.meta(b).strides;
  }

  Graph& graph_;
  const std::vector<int32_t> reads_, maker_;
  std::vector<bool> dropped_;
  /// the last node that reads it, copies back left out
  std::unordered_map<int32_t, int32_t> last_read_of_storage_;
};

}  // namespace

bool copies_back(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), is_copy_back);
}

Graph write_inputs_directly(Graph graph) {
  DirectWrites(graph).run();
  return graph;
}

}  // namespace tandem
