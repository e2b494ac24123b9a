#include "passes/loop_table.h"

#include <algorithm>

#include "ops/facts.h"
#include "passes/loop_formulas.h"

namespace tandem {
namespace {

/// None where the call makes no tensor.
Value first_result(const Node& node) {
  Value first;
  for_each_result(node, [&](Value v) { first = first ? first : v; });
  return first;
}

/// Whether all floating tensors have one dtype, in which formulas are as exact as libtorch is, and elements;
/// what an operator takes without elements, a reserve of bytes, it does not read. Wherever there is no code
/// of our own, libtorch's kernels are faster than formulas.
bool is_for_loops(const Graph& graph, const Node& node) {
  const Value result = first_result(node);
  if (!result) return false;
  const at::ScalarType dtype = graph.meta(result).dtype;
  bool fits = (dtype == at::kFloat || dtype == at::kDouble) && graph.meta(result).numel() > 0;
  for_each_argument(node, [&](Value v) {
    const TensorMeta& meta = graph.meta(v);
    const bool is_read = meta.dtype == dtype || c10::isIntegralType(meta.dtype, /*includeBool=*/true);
    fits = fits && meta.device.is_cpu() && !meta.neg && (is_read || meta.numel() == 0);
  });
  return fits;
}

/// Whether the operator normalises, folds or maps elements of its first argument, and there are some.
bool has_elements_to_read(const Graph& graph, const Node& node) {
  auto* input = std::get_if<Value>(&node.arguments[0]);
  return input && *input && graph.meta(*input).numel() > 0 &&
         graph.meta(*input).dtype == graph.meta(first_result(node)).dtype;
}

Decomposition where_loops_compute(Decomposition row) {
  std::string name = "loop " + row.name, version = row.version;
  return {[row = std::move(row)](Graph& graph, const Node& node) -> std::vector<Value> {
            return is_for_loops(graph, node) ? row(graph, node) : std::vector<Value>();
          },
          std::move(name), std::move(version)};
}

/// Calls that loops compute as they are, in fewer steps than their formulas have; partitioners know the last
/// of them by its name.
constexpr const char* known_to_loops[] = {"aten::sigmoid_backward", "aten::tanh_backward",
                                          "aten::threshold_backward"};

/// Rows that a user has put in the place of built-in ones are left alone.
void restrict_built_in_rows(DecompositionTable& table) {
  const DecompositionTable built_in = built_in_decompositions();
  for (auto& [op, row] : table) {
    auto original = built_in.find(op);
    if (original != built_in.end() && original->second.name == row.name) row = where_loops_compute(row);
  }
  for (const char* op : known_to_loops)
    if (table[op].name == "loop " + std::string(op)) table.erase(op);
}

Decomposition row_of(const LoopRow& row) {
  return {[rule = row.rule](Graph& graph, const Node& node) -> std::vector<Value> {
            if (!has_elements_to_read(graph, node)) return {};
            LoopFormula formula(graph, node);
            return rule(formula);
          },
          row.op, "1"};
}

/// Where there is one already it is a user's.
void add_rows(DecompositionTable& table, std::span<const LoopRow> rows) {
  for (const LoopRow& row : rows)
    if (!table.contains(row.op)) table[row.op] = where_loops_compute(row_of(row));
}

}  // namespace

Axes LoopFormula::axes(size_t i, Value v) const {
  const c10::IValue& named = constant(i);
  const int64_t rank = std::ssize(meta(v).sizes);
  Axes axes = named.isNone() ? Axes() : named.isInt() ? Axes{named.toInt()} : named.toIntVector();
  if (axes.empty() || rank == 0) return axes_between(0, rank);
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  return axes;
}

bool LoopFormula::is_made_by_loops(Value v) const {
  for (auto node = graph_.nodes().rbegin(); node != graph_.nodes().rend(); ++node) {
    bool makes = false;
    for_each_result(*node, [&](Value made) { makes = makes || made == v; });
    if (!makes) continue;
    if (!facts(node->op).view) return facts(node->op).fusible;
    v = std::get<Value>(node->arguments[0]);
  }
  return false;
}

DecompositionTable loop_decompositions() {
  DecompositionTable table = default_decompositions();
  restrict_built_in_rows(table);
  for (auto rows : {softmax_rows, norm_rows, batch_norm_rows, moment_rows, loss_rows, class_loss_rows,
                    smooth_activation_rows, piecewise_rows, plain_view_rows})
    add_rows(table, rows());
  return table;
}

}  // namespace tandem
