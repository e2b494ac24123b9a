#include "loops/twins.h"

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

}  // namespace

std::vector<int32_t> twins(const Graph& graph, const std::vector<bool>& asked) {
  std::vector<int32_t> twin(graph.value_count());
  std::iota(twin.begin(), twin.end(), 0);
  std::unordered_map<std::string, int32_t> known;
  for (size_t n = 0; n < asked.size(); ++n) {
    const Node& node = graph.nodes()[n];
    auto* result = node.results.size() == 1 ? std::get_if<Value>(&node.results[0]) : nullptr;
    if (!asked[n] || !result || !*result) continue;
    std::string text;
    bool is_spelled = true;
    spell_call(
        text, node, [&](Value v) { return v ? twin[size_t(v.id)] : -1; },
        [&](std::string&, const c10::IValue&) { is_spelled = false; });
    if (!is_spelled) continue;
    spell_layout(text, graph.meta(*result));
    twin[size_t(result->id)] = known.emplace(std::move(text), result->id).first->second;
  }
  return twin;
}

}  // namespace tandem::loops
