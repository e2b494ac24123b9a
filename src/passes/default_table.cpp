#include "passes/formulas.h"

#include <tandem/passes.h>

#include "base/by_name.h"

namespace tandem {
namespace {

std::vector<Value> masked_fill_scalar(Graph& graph, const Node& node) {
  Formula f(graph, node);
  return {f.where(f.tensor(1), f.scalar(f.constant(2), f.tensor(0)), f.tensor(0))};
}

std::vector<Value> masked_fill_tensor(Graph& graph, const Node& node) {
  Formula f(graph, node);
  const TensorMeta target = f.meta(f.tensor(0)), filling = f.meta(f.tensor(2));
  Value value = f.tensor(2);
  if (filling.dtype != target.dtype || filling.device != target.device)
    value = f.call("aten::_to_copy",
                   {value, c10::IValue(int64_t(target.dtype)), c10::IValue(), c10::IValue(target.device)});
  return {f.where(f.tensor(1), value, f.tensor(0))};
}

std::vector<Value> conj_physical(Graph& graph, const Node& node) {
  Formula f(graph, node);
  const TensorMeta meta = f.meta(f.tensor(0));
  if (!c10::isComplexType(meta.dtype)) return {f.tensor(0)};
  if (meta.conj) return {};
  Value parts = f.apply("aten::view_as_real", f.tensor(0));
  auto part = [&](int64_t i) {
    return f.call("aten::select.int", {parts, c10::IValue(int64_t(-1)), c10::IValue(i)});
  };
  return {f.call("aten::complex", {part(0), f.apply("aten::neg", part(1))})};
}

Value zeros(Formula& f, Value result) {
  const TensorMeta meta = f.meta(result);
  std::vector<int64_t> sizes(meta.sizes.begin(), meta.sizes.end());
  return f.call("aten::zeros", {c10::IValue(sizes), c10::IValue(int64_t(meta.dtype)), c10::IValue(),
                                c10::IValue(meta.device)});
}

/// The native form, with the updated statistics as results. What cuDNN leaves for its own backward only that
/// backward reads, and it is decomposed too.
std::vector<Value> cudnn_batch_norm(Graph& graph, const Node& node) {
  Formula f(graph, node);
  auto result = [&](size_t i) { return std::get<Value>(node.results[i]); };
  const c10::IValue &training = f.constant(5), &momentum = f.constant(6), &epsilon = f.constant(7);
  if (!training.toBool()) {
    Value out = f.call("aten::_native_batch_norm_legit_no_training",
                       {f.tensor(0), f.tensor(1), f.tensor(2), f.tensor(3), f.tensor(4), momentum, epsilon});
    return {out, zeros(f, result(1)), zeros(f, result(2)), zeros(f, result(3))};
  }
  // the statistics are written unseen: only the call itself can do that
  if (node.writes.empty() && f.tensor(3)) return {};
  std::vector<Value> made;
  if (!f.tensor(3)) {
    Node& native = f.node("aten::_native_batch_norm_legit.no_stats",
                          {f.tensor(0), f.tensor(1), f.tensor(2), training, momentum, epsilon});
    for_each_result(native, [&](Value v) { made.push_back(v); });
  } else {
    Node& native = f.node(
        "aten::_native_batch_norm_legit_functional",
        {f.tensor(0), f.tensor(1), f.tensor(2), f.tensor(3), f.tensor(4), training, momentum, epsilon});
    for_each_result(native, [&](Value v) { made.push_back(v); });
  }
  made.insert(made.begin() + 3, zeros(f, result(3)));
  return made;
}

std::vector<Value> cudnn_batch_norm_backward(Graph& graph, const Node& node) {
  Formula f(graph, node);
  c10::List<bool> mask({true, true, true});
  Node& native = f.node("aten::native_batch_norm_backward",
                        {f.tensor(1), f.tensor(0), f.tensor(2), f.tensor(3), f.tensor(4), f.tensor(5),
                         f.tensor(6), c10::IValue(true), node.arguments[7], c10::IValue(mask)});
  std::vector<Value> made, wanted;
  for_each_result(native, [&](Value v) { made.push_back(v); });
  for_each_result(node, [&](Value v) { wanted.push_back(v); });
  if (wanted.size() != made.size()) return {};
  return made;
}

ByName<Decomposition>& known_decompositions() {
  static ByName<Decomposition> known("decomposition", built_in_decompositions());
  return known;
}

}  // namespace

DecompositionTable built_in_decompositions() {
  DecompositionTable table;
  add_activations(table);
  add_activation_backwards(table);
  struct {
    const char* op;
    std::vector<Value> (*rule)(Graph&, const Node&);
  } rows[] = {
      {"aten::masked_fill.Scalar", masked_fill_scalar},
      {"aten::masked_fill.Tensor", masked_fill_tensor},
      {"aten::conj_physical", conj_physical},
      {"aten::cudnn_batch_norm", cudnn_batch_norm},
      {"aten::cudnn_batch_norm_backward", cudnn_batch_norm_backward},
  };
  for (const auto& [op, rule] : rows) table[op] = Decomposition(rule, op, "1");
  return table;
}

DecompositionTable default_decompositions() { return known_decompositions().all(); }

void register_decomposition(const std::string& op, Decomposition decomposition) {
  if (!decomposition) throw Error("register_decomposition was given no function for " + op + "; pass one");
  // a name that libtorch does not know is a mistake that would never show
  find_op(op);
  known_decompositions().add(op, std::move(decomposition));
}

}  // namespace tandem
