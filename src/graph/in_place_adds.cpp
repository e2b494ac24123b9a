#include "graph/in_place_adds.h"

#include <c10/util/flat_hash_map.h>

#include "graph/geometry.h"

namespace tandem {
namespace {

/// Storages that the caller can see: those of inputs and constants.
ska::flat_hash_set<int32_t> foreign_storages(const Graph& graph) {
  ska::flat_hash_set<int32_t> storages;
  for (Value v : graph.inputs()) storages.insert(graph.meta(v).storage);
  for (const auto& [value, data] : graph.constants()) storages.insert(graph.meta(value).storage);
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
  const ska::flat_hash_set<int32_t> foreign = foreign_storages(graph);
  for (size_t i = 0; i < targets_.size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.op != add) continue;
    auto *left = std::get_if<Value>(&node.arguments[0]), *right = std::get_if<Value>(&node.arguments[1]),
         *result = std::get_if<Value>(&node.results[0]);
    auto* alpha = std::get_if<c10::IValue>(&node.arguments[2]);
    if (!left || !right || !alpha || !*left || !*right || !*result || *left == *right) continue;
    auto may_take = [&](Value v) {
      const TensorMeta& meta = graph.meta(v);
      return last_read[v.id] == int32_t(i) && meta.storage >= 0 && !foreign.count(meta.storage) &&
             holds_result(meta, graph.meta(*result));
    };
    if (may_take(*left))
      targets_[i] = 0;
    else if (may_take(*right) && alpha->isInt() && alpha->toInt() == 1)
      targets_[i] = 1;
  }
}

}  // namespace tandem
