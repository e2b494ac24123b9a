#include "loops/drafting.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "loops/nodes.h"
#include "loops/spread.h"

namespace tandem::loops {

Drafting::Drafting(const Source& source, std::span<const int32_t> members, const LoopNest& whole,
                   const Part& part)
    : source_(source), members_(members), whole_(whole), first_(part.first) {
  made_.nest = part.nest;
  for (size_t loop = 0; loop < whole.size(); ++loop) {
    (whole[loop].reduced ? reduced_ : kept_).push_back(loop);
    all_.push_back(loop);
  }
}

bool Drafting::run(std::span<const Value> wanted) {
  for (auto value = wanted.rbegin(); value != wanted.rend(); ++value)
    if (!store(*value)) return false;
  return true;
}

bool Drafting::is_member(int32_t node) const {
  return node >= 0 && std::binary_search(members_.begin(), members_.end(), node);
}

int32_t Drafting::key(Value anchor) const {
  return is_member(source_.makers[anchor.id]) ? source_.twins[size_t(anchor.id)] : -1 - anchor.id;
}

bool Drafting::store(Value value) {
  for (const Evaluated& known : known_)
    if (known.key == key(value) && goes_apart(known.access) && is_whole(value, known.access)) {
      made_.stores.push_back({{value, known.access}, known.expr});
      return true;
    }
  const std::optional<Access> access = access_by_sizes(value);
  if (!access) return made_.nest != whole_;  // another part has it
  if (!goes_apart(*access)) return false;
  const int32_t expr = evaluate(value, *access);
  if (expr >= 0) made_.stores.push_back({{value, *access}, expr});
  return expr >= 0;
}

bool Drafting::goes_apart(const Access& access) const {
  return std::all_of(kept_.begin(), kept_.end(),
                     [&](size_t loop) { return access.strides[loop] != 0 || made_.nest[loop].size == 1; });
}

bool Drafting::is_whole(Value value, const Access& access) {
  std::optional<Split> other;
  const auto way = way_along(made_.nest, access, graph().meta(value), other);
  return way && covers(made_.nest, *way, graph().meta(value));
}

std::optional<Access> Drafting::access_by_sizes(Value value) {
  const TensorMeta& meta = graph().meta(value);
  for (const std::vector<size_t>* loops : {&all_, &kept_}) {
    std::optional<Split> wanted;
    if (const auto along = spread(whole_, *loops, meta.sizes, wanted)) {
      const Way way{*along, Dims(meta.sizes.size(), 0)};
      return in_part(access_along(way, meta, [](int32_t dim) { return dim; }));
    }
    if (wanted && !split) split = wanted;
  }
  return std::nullopt;
}

Access Drafting::in_part(Access access) const {
  for (size_t loop = 0; loop < first_.size(); ++loop) access.offset += first_[loop] * access.strides[loop];
  return access;
}

int32_t Drafting::evaluate(Value value, const Access& access) {
  const Value anchor = source_.anchors[value.id];
  const int32_t wanted = key(anchor);
  for (const Evaluated& known : known_)
    if (known.key == wanted && known.access == access) return known.expr;
  const int32_t node = source_.makers[anchor.id];
  const bool is_computed = is_member(node);
  const int32_t expr =
      is_computed ? compute(graph().nodes()[size_t(node)], anchor, access) : load(anchor, access);
  if (expr < 0) return -1;
  const auto is_elsewhere = [&](const Evaluated& known) { return known.key == wanted; };
  if (is_computed && std::any_of(known_.begin(), known_.end(), is_elsewhere)) ++made_.repeats;
  known_.push_back({wanted, access, expr});
  return expr;
}

int32_t Drafting::load(Value anchor, const Access& access) {
  made_.loads.push_back({anchor, access});
  return made_.expressions.load(int32_t(made_.loads.size()) - 1, *type_of(graph().meta(anchor).dtype));
}

int32_t Drafting::compute(const Node& node, Value result, const Access& access) {
  const auto way = way_along(made_.nest, access, graph().meta(result), split);
  if (!way) return -1;
  if (const FoldRow* fold = find_fold_row(node.op)) return compute_fold(node, *fold, result, *way);
  return has_pieces(node.op) ? read_piece(node, result, *way) : compute_pointwise(node, *way);
}

int32_t Drafting::read_piece(const Node& node, Value result, Way way) {
  const std::optional<Pieces> pieces = pieces_of(graph(), node);
  const auto found = piece_along(made_.nest, way, *pieces, cut);
  if (!found) return -1;
  const Type type = *type_of(graph().meta(result).dtype);
  const Piece* piece = *found;
  if (!piece) return made_.expressions.number(pieces->rest, type);
  for (size_t dim = 0; dim < way.first.size(); ++dim) way.first[dim] -= piece->first[dim];
  const TensorMeta& meta = graph().meta(piece->from);
  const int32_t element =
      evaluate(piece->from, access_along(way, meta, [&](int32_t dim) { return pieces->dim_of(dim); }));
  return element < 0 ? -1 : made_.expressions.cast(element, type);
}

int32_t Drafting::compute_pointwise(const Node& node, const Way& way) {
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

int32_t Drafting::compute_fold(const Node& node, const FoldRow& row, Value result, const Way& way) {
  const Value operand = *argument_of(node, 0);
  const int64_t count = graph().meta(operand).numel() / graph().meta(result).numel();
  Expressions& e = made_.expressions;
  const Type type = *type_of(graph().meta(result).dtype);
  Access access = access_of_kept(node, operand, result, way);
  Access number{Dims(made_.nest.size(), 0)};
  if (count > 1 && !add_folded(node, operand, way, access, number)) return -1;
  const int32_t element = evaluate(operand, access);
  if (element < 0) return -1;
  if (row.place) return is_loaded(operand) ? e.cast(place_of_first(row.op, element, number), type) : -1;
  const int32_t value = e.cast(element, type);
  if (count == 1) return value;
  const int32_t folded = e.fold(row.op, value);
  return row.mean ? e.binary(Op::Div, folded, e.number(double(count), type)) : folded;
}

bool Drafting::is_loaded(Value operand) const {
  return !is_member(source_.makers[source_.anchors[operand.id].id]) ||
         !is_real(*type_of(graph().meta(operand).dtype));
}

int32_t Drafting::place_of_first(Op fold, int32_t element, const Access& number) {
  Expressions& e = made_.expressions;
  int32_t is_found = e.compare(Op::Eq, element, e.fold(fold, element));
  if (is_real(e.type(element))) is_found = e.binary(Op::Or, is_found, e.compare(Op::Ne, element, element));
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  const bool is_narrow = elements(made_.nest, number) < most;
  const Type type = is_narrow ? Type::I32 : Type::I64;
  made_.loads.push_back({Value(), number});
  const int32_t place = e.offset(int32_t(made_.loads.size()) - 1, type);
  const int32_t none = e.number(is_narrow ? most : std::numeric_limits<int64_t>::max(), type);
  return e.fold(Op::ReduceMin, e.select(is_found, place, none));
}

Access Drafting::access_of_kept(const Node& node, Value operand, Value result, const Way& way) const {
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

bool Drafting::add_folded(const Node& node, Value operand, const Way& way, Access& access, Access& number) {
  const TensorMeta& meta = graph().meta(operand);
  Dims sizes(meta.sizes.size(), 1);
  for (int32_t dim : folded_dims(graph(), node)) sizes[size_t(dim)] = meta.sizes[size_t(dim)];
  for (size_t loop : reduced_)
    if (way.loops[loop].dim >= 0) return false;
  const auto along = spread(made_.nest, reduced_, sizes, split);
  if (!along) return false;
  for (size_t loop : reduced_) {
    const auto [dim, step] = (*along)[loop];
    if (dim < 0) continue;
    access.strides[loop] = step * meta.strides[size_t(dim)];
    number.strides[loop] =
        step * std::accumulate(sizes.begin() + dim + 1, sizes.end(), int64_t(1), std::multiplies<>());
  }
  return true;
}

}  // namespace tandem::loops
