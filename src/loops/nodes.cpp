#include "loops/nodes.h"

#include "graph/boxing.h"
#include "graph/geometry.h"
#include "loops/operators.h"
#include "loops/pieces.h"
#include "loops/rows.h"

namespace tandem::loops {
namespace {

bool is_readable(const TensorMeta& meta) {
  return meta.device.is_cpu() && !meta.neg && !meta.conj && type_of(meta.dtype);
}

/// A result that fills memory of its own, with elements.
bool is_writable(const TensorMeta& meta) {
  return is_readable(meta) && meta.numel() > 0 && meta.offset == 0 && is_surely_injective(meta);
}

bool has_plain_edges(const Graph& graph, const Node& node) {
  if (!node.writes.empty() || node.state || node.results.size() != 1 || reads_numbers(node)) return false;
  auto* result = std::get_if<Value>(&node.results[0]);
  if (!result || !*result || !is_writable(graph.meta(*result))) return false;
  bool readable = true;
  for (const Operand& argument : node.arguments) {
    const at::Tensor* held = held_by(argument);
    if (held && !is_number(*held)) return false;
    for_each_value(argument, [&](Value v) {
      readable =
          readable && is_readable(graph.meta(v)) && graph.meta(v).storage != graph.meta(*result).storage;
    });
  }
  return readable;
}

bool has_list(const Node& node) {
  for (const Operand& argument : node.arguments)
    if (std::holds_alternative<std::vector<Value>>(argument)) return true;
  return false;
}

/// Its row, tried on operands that are not there yet.
bool row_takes(const Graph& graph, const Node& node, LowerNode row) {
  if (has_list(node)) return false;
  Expressions expressions;
  std::vector<int32_t> operands;
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const Value* value = argument_of(node, i);
    operands.push_back(value ? expressions.load(int32_t(i), *type_of(graph.meta(*value).dtype))
                             : held_number(expressions, node.arguments[i]));
  }
  return row(Lowering(expressions, graph, node, operands)).has_value();
}

/// The places of extremes among fewer elements are looked for one by one, as libtorch does.
constexpr int64_t fewest_for_places = 8;

bool fold_takes(const Graph& graph, const Node& node, const FoldRow& row) {
  if (!argument_of(node, 0)) return false;
  const Type to = *type_of(graph.meta(result_of(node)).dtype);
  const int64_t all = graph.meta(*argument_of(node, 0)).numel();
  if (row.place && all < fewest_for_places * graph.meta(result_of(node)).numel()) return false;
  return all > 0 && (kind_of(to) & operator_of(row.op).types) && (!row.mean || is_real(to)) &&
         (!row.question || to == Type::Bool);
}

/// All that it is put together of are values of the graph.
bool pieces_fit(const Graph& graph, const Node& node) {
  const Operand& first = node.arguments[0];
  if (auto* list = std::get_if<std::vector<Value>>(&first)) {
    if (std::find(list->begin(), list->end(), Value()) != list->end()) return false;
  } else if (!argument_of(node, 0)) {
    return false;
  }
  return pieces_of(graph, node).has_value();
}

}  // namespace

const Value* argument_of(const Node& node, size_t i) {
  auto* value = std::get_if<Value>(&node.arguments[i]);
  return value && *value ? value : nullptr;
}

bool is_for_loops(const Graph& graph, const Node& node) {
  const LowerNode row = find_pointwise_row(node.op);
  const FoldRow* fold = row ? nullptr : find_fold_row(node.op);
  const bool pieces = !row && !fold && has_pieces(node.op);
  if ((!row && !fold && !pieces) || !has_plain_edges(graph, node)) return false;
  if (pieces) return pieces_fit(graph, node);
  return row ? row_takes(graph, node, row) : fold_takes(graph, node, *fold);
}

}  // namespace tandem::loops
