#include "graph/in_place_adds.h"

#include "graph/geometry.h"

namespace tandem {
namespace {

/// Storages that the caller can see: those of inputs and constants.
std::vector<bool> foreign_storages(const Graph& graph) {
  std::vector<bool> storages(size_t(graph.fresh_storage()));
  auto note = [&](Value v) {
    if (const int32_t storage = graph.meta(v).storage; storage >= 0) storages[size_t(storage)] = true;
  };
  for (Value v : graph.inputs()) note(v);
  for (const auto& [value, data] : graph.constants()) note(value);
  return storages;
}

bool holds_result(const TensorMeta& operand, const TensorMeta& result) {
  return operand.dtype == result.dtype && operand.device == result.device && operand.sizes == result.sizes &&
         operand.strides == result.strides && !operand.conj && !operand.neg && !operand.sizes.empty() &&
         is_dense(operand);
}

}  // namespace

InPlaceAdds::InPlaceAdds(const Graph& graph, const std::vector<int32_t>& last_read)
    : targets_(graph.nodes().size(), -1) {
  static const c10::OperatorHandle add =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor");
  const std::vector<bool> foreign = foreign_storages(graph);
  for (size_t i = 0; i < targets_.size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.op != add) continue;
    auto *left = std::get_if<Value>(&node.arguments[0]), *right = std::get_if<Value>(&node.arguments[1]),
         *result = std::get_if<Value>(&node.results[0]);
    auto* alpha = std::get_if<c10::IValue>(&node.arguments[2]);
    if (!left || !right || !alpha || !*left || !*right || !*result || *left == *right) continue;
    auto may_take = [&](Value v) {
      const TensorMeta& meta = graph.meta(v);
      return last_read[v.id] == int32_t(i) && meta.storage >= 0 && !foreign[size_t(meta.storage)] &&
             holds_result(meta, graph.meta(*result));
    };
    if (may_take(*left))
      targets_[i] = 0;
    else if (may_take(*right) && alpha->isInt() && alpha->toInt() == 1)
      targets_[i] = 1;
  }
}

}  // namespace tandem
