#include "loops/twins.h"

#include <c10/util/hash.h>

#include <numeric>
#include <unordered_map>

#include "graph/spelling.h"

namespace tandem::loops {
namespace {

void spell_layout(std::string& to, const TensorMeta& meta) {
  spell(to, 'd', int64_t(meta.dtype));
  spell(to, 'o', meta.offset);
  for (int64_t size : meta.sizes) spell(to, 's', size);
  for (int64_t stride : meta.strides) spell(to, 't', stride);
}

/// Looks for the first of equal nodes. Texts are made of those alone that call one operator on the same
/// values.
class TwinFinder {
 public:
  explicit TwinFinder(const Graph& graph) : graph_(graph), twin_(graph.value_count()) {
    std::iota(twin_.begin(), twin_.end(), 0);
  }

  void include(const Node& node) {
    auto* result = node.results.size() == 1 ? std::get_if<Value>(&node.results[0]) : nullptr;
    if (!result || !*result) return;
    std::vector<const Node*>& alike = alike_[hash_of(node)];
    for (const Node* other : alike)
      if (const std::string text = text_of(node); !text.empty() && text == text_of(*other)) {
        twin_[size_t(result->id)] = std::get<Value>(other->results[0]).id;
        return;
      }
    alike.push_back(&node);
  }

  std::vector<int32_t> take() { return std::move(twin_); }

 private:
  int32_t number(Value v) const { return v ? twin_[size_t(v.id)] : -1; }

  size_t hash_of(const Node& node) const {
    size_t hash = std::hash<c10::OperatorHandle>()(node.op);
    for_each_argument(node, [&](Value v) { hash = c10::hash_combine(hash, size_t(number(v))); });
    return hash;
  }

  /// Empty where a constant has no text.
  std::string text_of(const Node& node) const {
    std::string text;
    bool is_spelled = true;
    spell_call(
        text, node, [&](Value v) { return number(v); },
        [&](std::string&, const c10::IValue&) { is_spelled = false; });
    spell_layout(text, graph_.meta(std::get<Value>(node.results[0])));
    return is_spelled ? text : std::string();
  }

  const Graph& graph_;
  std::vector<int32_t> twin_;
  std::unordered_map<size_t, std::vector<const Node*>> alike_;
};

}  // namespace

std::vector<int32_t> twins(const Graph& graph, const std::vector<bool>& asked) {
  TwinFinder finder(graph);
  for (size_t n = 0; n < asked.size(); ++n)
    if (asked[n]) finder.include(graph.nodes()[n]);
  return finder.take();
}

}  // namespace tandem::loops
