#include "runtime/nan_source.h"

#include "backends/interpreter.h"
#include "ops/facts.h"

namespace tandem {
namespace {

bool has_nan(const at::Tensor& tensor) {
  return tensor.defined() && (tensor.is_floating_point() || tensor.is_complex()) && at::isnan(tensor).any().item<bool>();
}

}  // namespace

std::string source_of_nan(const Graph& graph, Tensors inputs) {
  std::string source;
  Program(graph, Lifetime::WholeRun).run(std::move(inputs), [&](size_t index, const at::Tensor* registers) {
    if (!source.empty()) return;
    const Node& node = graph.nodes()[index];
    bool before = false, after = false;
    for_each_result(node, [&](Value v) { after = after || has_nan(registers[v.id]); });
    if (!after) return;
    for_each_argument(node, [&](Value v) { before = before || has_nan(registers[v.id]); });
    if (!before) source = full_name(node.op) + ":\n" + excerpt(graph, index);
  });
  return source;
}

}  // namespace tandem
