#include "runtime/nan_source.h"

#include <torch/csrc/autograd/anomaly_mode.h>

#include "backends/interpreter.h"
#include "ops/facts.h"

namespace tandem {
namespace {

bool has_nan(const at::Tensor& tensor) {
  return tensor.defined() && (tensor.is_floating_point() || tensor.is_complex()) &&
         at::isnan(tensor).any().item<bool>();
}

}  // namespace

std::string source_of_nan(const Graph& graph, Tensors inputs) {
  std::string source;
  Interpreter(graph, Lifetime::WholeRun)
      .run(std::move(inputs), [&](size_t index, const at::Tensor* registers) {
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

NanReport::NanReport(const Tensors& inputs) {
  if (torch::autograd::AnomalyMode::is_enabled() && torch::autograd::AnomalyMode::should_check_nan())
    inputs_ = inputs;
}

void NanReport::check(const Tensors& gradients, const Graph& graph, const std::string& node) const {
  if (!inputs_) return;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined() || !at::isnan(gradients[i]).any().item<bool>()) continue;
    // What came in from outside the engine reports by itself.
    const std::string source = source_of_nan(graph, *inputs_);
    TORCH_CHECK(source.empty(), "Function '", node, "' returned nan values in its ", i,
                "th output. They come from ", source);
    return;
  }
}

}  // namespace tandem
