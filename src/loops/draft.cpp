#include "loops/draft.h"

#include <algorithm>

#include "graph/boxing.h"
#include "graph/geometry.h"
#include "loops/operators.h"
#include "loops/rows.h"
#include "loops/spread.h"

namespace tandem::loops {
namespace {

const Value* argument_of(const Node& node, size_t i) {
  auto* value = std::get_if<Value>(&node.arguments[i]);
  return value && *value ? value : nullptr;
}

Value result_of(const Node& node) { return std::get<Value>(node.results[0]); }

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
    if (std::holds_alternative<std::vector<Value>>(argument) || (held && !is_number(*held))) return false;
    for_each_value(argument, [&](Value v) {
      readable =
          readable && is_readable(graph.meta(v)) && graph.meta(v).storage != graph.meta(*result).storage;
    });
  }
  return readable;
}

/// Its row, tried on operands that are not there yet.
bool row_takes(const Graph& graph, const Node& node, LowerNode row) {
  Expressions expressions;
  std::vector<int32_t> operands;
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const Value* value = argument_of(node, i);
    operands.push_back(value ? expressions.load(int32_t(i), *type_of(graph.meta(*value).dtype))
                             : held_number(expressions, node.arguments[i]));
  }
  return row(Lowering(expressions, graph, node, operands)).has_value();
}

bool fold_takes(const Graph& graph, const Node& node, const FoldRow& row) {
  if (!argument_of(node, 0)) return false;
  const Type to = *type_of(graph.meta(result_of(node)).dtype);
  return graph.meta(*argument_of(node, 0)).numel() > 0 && (kind_of(to) & operator_of(row.op).types) &&
         (!row.mean || is_real(to)) && (!row.question || to == Type::Bool);
}

}  // namespace

bool is_for_loops(const Graph& graph, const Node& node) {
  const LowerNode row = find_pointwise_row(node.op);
  const FoldRow* fold = row ? nullptr : find_fold_row(node.op);
  if ((!row && !fold) || !has_plain_edges(graph, node)) return false;
  return row ? row_takes(graph, node, row) : fold_takes(graph, node, *fold);
}

namespace {

/// One attempt with one nest.
class Drafting {
 public:
  Drafting(const Source& source, std::span<const int32_t> members, const LoopNest& nest)
      : source_(source), members_(members) {
    made_.nest = nest;
    for (size_t loop = 0; loop < nest.size(); ++loop) (nest[loop].reduced ? reduced_ : kept_).push_back(loop);
    for (size_t loop = 0; loop < nest.size(); ++loop) all_.push_back(loop);
  }

  /// False where it cannot be done, or not with this nest: `split` says what to change then.
  bool run(std::span<const Value> wanted) {
    for (auto value = wanted.rbegin(); value != wanted.rend(); ++value)
      if (!store(*value)) return false;
    return true;
  }

  std::optional<Split> split;
  Draft take() { return std::move(made_); }

 private:
  struct Evaluated {
    Access access;
    int32_t expr;
  };

  const Graph& graph() const { return source_.graph; }
  bool is_member(int32_t node) const {
    return node >= 0 && std::binary_search(members_.begin(), members_.end(), node);
  }

  /// What is computed here twice is computed once.
  int32_t key(Value anchor) const {
    return is_member(source_.makers[anchor.id]) ? source_.twins[size_t(anchor.id)] : anchor.id;
  }

  bool store(Value value) {
    for (const Evaluated& known : known_[key(value)])
      if (goes_apart(known.access) && is_whole(value, known.access)) {
        made_.stores.push_back({{value, known.access}, known.expr});
        return true;
      }
    const std::optional<Access> access = access_by_sizes(value);
    if (!access || !goes_apart(*access)) return false;
    const int32_t expr = evaluate(value, *access);
    if (expr >= 0) made_.stores.push_back({{value, *access}, expr});
    return expr >= 0;
  }

  /// Whether no two places of the kept loops have one element.
  bool goes_apart(const Access& access) const {
    return std::all_of(kept_.begin(), kept_.end(), [&](size_t loop) { return access.strides[loop] != 0; });
  }

  bool is_whole(Value value, const Access& access) {
    std::optional<Split> other;
    const auto way = way_along(made_.nest, access, graph().meta(value), other);
    return way && covers(made_.nest, *way, graph().meta(value));
  }

  /// Where its dimensions follow each other as the loops do: all of them, or those that are kept.
  std::optional<Access> access_by_sizes(Value value) {
    const TensorMeta& meta = graph().meta(value);
    for (const std::vector<size_t>* loops : {&all_, &kept_}) {
      std::optional<Split> wanted;
      if (const auto along = spread(made_.nest, *loops, meta.sizes, wanted)) {
        const Way way{*along, Dims(meta.sizes.size(), 0)};
        return access_along(way, meta, [](int32_t dim) { return dim; });
      }
      if (wanted && !split) split = wanted;
    }
    return std::nullopt;
  }

  /// The expression of the element there; -1 where there is none.
  int32_t evaluate(Value value, const Access& access) {
    const Value anchor = source_.anchors[value.id];
    auto& known = known_[key(anchor)];
    for (const Evaluated& each : known)
      if (each.access == access) return each.expr;
    const int32_t node = source_.makers[anchor.id];
    const int32_t expr =
        is_member(node) ? compute(graph().nodes()[size_t(node)], anchor, access) : load(anchor, access);
    if (expr < 0) return -1;
    auto& now_known = known_[key(anchor)];
    if (!now_known.empty() && is_member(node)) ++made_.repeats;
    now_known.push_back({access, expr});
    return expr;
  }

  int32_t load(Value anchor, const Access& access) {
    made_.loads.push_back({anchor, access});
    return made_.expressions.load(int32_t(made_.loads.size()) - 1, *type_of(graph().meta(anchor).dtype));
  }

  int32_t compute(const Node& node, Value result, const Access& access) {
    const auto way = way_along(made_.nest, access, graph().meta(result), split);
    if (!way) return -1;
    if (const FoldRow* fold = find_fold_row(node.op)) return compute_fold(node, *fold, result, *way);
    return compute_pointwise(node, *way);
  }

  int32_t compute_pointwise(const Node& node, const Way& way) {
    std::vector<int32_t> operands(node.arguments.size(), -1);
    for (size_t i = 0; i < operands.size(); ++i) {
      const Value* argument = argument_of(node, i);
      if (!argument) operands[i] = held_number(made_.expressions, node.arguments[i]);
      if (!argument) continue;
      const TensorMeta& meta = graph().meta(*argument);
      const auto missing = int32_t(way.first.size()) - int32_t(meta.sizes.size());
      operands[i] = evaluate(*argument, access_along(way, meta, [&](int32_t dim) { return dim - missing; }));
      if (operands[i] < 0) return -1;
    }
    return find_pointwise_row(node.op)(Lowering(made_.expressions, graph(), node, operands)).value_or(-1);
  }

  int32_t compute_fold(const Node& node, const FoldRow& row, Value result, const Way& way) {
    const Value operand = *argument_of(node, 0);
    const int64_t count = graph().meta(operand).numel() / graph().meta(result).numel();
    Access access = access_of_kept(node, operand, result, way);
    if (count > 1 && !add_folded(node, operand, way, access)) return -1;
    const int32_t element = evaluate(operand, access);
    if (element < 0) return -1;
    Expressions& e = made_.expressions;
    const Type type = *type_of(graph().meta(result).dtype);
    const int32_t value = e.cast(element, type);
    if (count == 1) return value;
    const int32_t folded = e.fold(row.op, value);
    return row.mean ? e.binary(Op::Div, folded, e.number(double(count), type)) : folded;
  }

  /// Where the operand's first element is that a place of the result folds.
  Access access_of_kept(const Node& node, Value operand, Value result, const Way& way) const {
    const TensorMeta& meta = graph().meta(operand);
    const std::vector<int32_t> folded = folded_dims(graph(), node);
    const bool keeps = graph().meta(result).sizes.size() == meta.sizes.size();
    std::vector<int32_t> place;  // of each dimension of the result among the operand's; -1: folded
    for (int32_t dim = 0; dim < int32_t(meta.sizes.size()); ++dim) {
      const bool is_folded = std::binary_search(folded.begin(), folded.end(), dim);
      if (!is_folded || keeps) place.push_back(is_folded ? -1 : dim);
    }
    return access_along(way, meta, [&](int32_t dim) { return place[size_t(dim)]; });
  }

  /// The folded dimensions go along the reduced loops, along which the result stays where it is.
  bool add_folded(const Node& node, Value operand, const Way& way, Access& access) {
    const TensorMeta& meta = graph().meta(operand);
    Dims sizes(meta.sizes.size(), 1);
    for (int32_t dim : folded_dims(graph(), node)) sizes[size_t(dim)] = meta.sizes[size_t(dim)];
    for (size_t loop : reduced_)
      if (way.loops[loop].dim >= 0) return false;
    const auto along = spread(made_.nest, reduced_, sizes, split);
    if (!along) return false;
    for (size_t loop : reduced_)
      if ((*along)[loop].dim >= 0)
        access.strides[loop] = (*along)[loop].step * meta.strides[size_t((*along)[loop].dim)];
    return true;
  }

  const Source& source_;
  const std::span<const int32_t> members_;
  std::vector<size_t> kept_, reduced_, all_;
  std::unordered_map<int32_t, std::vector<Evaluated>> known_;  ///< by key
  Draft made_;
};

/// The loops that a node by itself would have.
LoopNest nest_of(const Graph& graph, const Node& node) {
  const bool is_fold = find_fold_row(node.op) != nullptr;
  const TensorMeta& space = graph.meta(is_fold ? *argument_of(node, 0) : result_of(node));
  const std::vector<int32_t> folded = is_fold ? folded_dims(graph, node) : std::vector<int32_t>();
  LoopNest nest;
  for (size_t dim = 0; dim < space.sizes.size(); ++dim)
    if (space.sizes[dim] > 1)
      nest.push_back({space.sizes[dim], std::binary_search(folded.begin(), folded.end(), int32_t(dim))});
  return nest;
}

int64_t places(const LoopNest& nest) {
  int64_t count = 1;
  for (const Loop& loop : nest) count *= loop.size;
  return count;
}

bool folds(const LoopNest& nest) {
  return std::any_of(nest.begin(), nest.end(), [](const Loop& loop) { return loop.reduced; });
}

/// That of the widest member; one that folds before those that do not.
LoopNest widest_nest(const Graph& graph, std::span<const int32_t> members) {
  LoopNest widest;
  for (int32_t member : members) {
    LoopNest nest = nest_of(graph, graph.nodes()[size_t(member)]);
    if (std::pair(folds(nest), places(nest)) > std::pair(folds(widest), places(widest)))
      widest = std::move(nest);
  }
  return widest;
}

constexpr int most_splits = 8;

}  // namespace

std::optional<Draft> draft(const Source& source, std::span<const int32_t> members,
                           std::span<const Value> wanted) {
  LoopNest nest = widest_nest(source.graph, members);
  for (int attempt = 0; attempt <= most_splits; ++attempt) {
    Drafting drafting(source, members, nest);
    if (drafting.run(wanted)) return drafting.take();
    if (!drafting.split) return std::nullopt;
    const auto [loop, inner] = *drafting.split;
    nest[loop].size /= inner;
    nest.insert(nest.begin() + int64_t(loop) + 1, {inner, nest[loop].reduced});
  }
  return std::nullopt;
}

}  // namespace tandem::loops
