#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "loops/rows.h"
#include "ops/by_operator.h"
#include "ops/facts.h"

namespace tandem::loops {
namespace {

const std::unordered_map<std::string, FoldRow>& fold_table() {
  static const std::unordered_map<std::string, FoldRow> table = {
      {"aten::sum", {Op::ReduceSum}},
      {"aten::sum.dim_IntList", {Op::ReduceSum}},
      {"aten::mean", {Op::ReduceSum, true}},
      {"aten::mean.dim", {Op::ReduceSum, true}},
      {"aten::prod", {Op::ReduceProduct}},
      {"aten::prod.dim_int", {Op::ReduceProduct}},
      {"aten::amax", {Op::ReduceMax}},
      {"aten::amin", {Op::ReduceMin}},
      {"aten::max", {Op::ReduceMax}},
      {"aten::min", {Op::ReduceMin}},
      {"aten::any", {Op::ReduceMax, false, true}},
      {"aten::any.dim", {Op::ReduceMax, false, true}},
      {"aten::all", {Op::ReduceMin, false, true}},
      {"aten::all.dim", {Op::ReduceMin, false, true}},
      {"aten::argmax", {.op = Op::ReduceMax, .place = true}},
      {"aten::argmin", {.op = Op::ReduceMin, .place = true}},
  };
  return table;
}

/// The argument that names dimensions, where the operator has one; else all are folded.
std::vector<int64_t> named_dims(const Node& node) {
  const auto& declared = node.op.schema().arguments();
  if (declared.size() < 2 || declared[1].name() != "dim") return {};
  const c10::IValue& dims = std::get<c10::IValue>(node.arguments[1]);
  if (dims.isNone()) return {};
  if (dims.isInt()) return {dims.toInt()};
  return dims.toIntVector();
}

}  // namespace

const FoldRow* find_fold_row(const c10::OperatorHandle& op) {
  static ByOperator<const FoldRow*> found;
  return found.of(op, [](const c10::OperatorHandle& asked) -> const FoldRow* {
    const auto row = fold_table().find(full_name(asked));
    return row == fold_table().end() ? nullptr : &row->second;
  });
}

std::vector<int32_t> folded_dims(const Graph& graph, const Node& node) {
  const auto rank = static_cast<int64_t>(graph.meta(std::get<Value>(node.arguments[0])).sizes.size());
  std::vector<int32_t> dims;
  for (int64_t dim : named_dims(node)) dims.push_back(static_cast<int32_t>(dim < 0 ? dim + rank : dim));
  if (dims.empty()) {
    dims.resize(size_t(rank));
    std::iota(dims.begin(), dims.end(), 0);
  }
  std::sort(dims.begin(), dims.end());
  return dims;
}

}  // namespace tandem::loops
