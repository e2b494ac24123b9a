#include "loops/draft.h"

#include <algorithm>

#include "loops/nests.h"
#include "loops/nodes.h"
#include "loops/pieces.h"
#include "loops/rows.h"
#include "loops/spread.h"

namespace tandem::loops {
namespace {

/// Places of a nest that one kernel computes: so many steps of each loop, behind so many.
struct Part {
  LoopNest nest;
  Dims first;
};

/// One attempt with one nest, for a part of it.
class Drafting {
 public:
  Drafting(const Source& source, std::span<const int32_t> members, const LoopNest& whole, const Part& part)
      : source_(source), members_(members), whole_(whole), first_(part.first) {
    made_.nest = part.nest;
    for (size_t loop = 0; loop < whole.size(); ++loop) {
      (whole[loop].reduced ? reduced_ : kept_).push_back(loop);
      all_.push_back(loop);
    }
  }

  /// Stores what is there of these. False where it cannot be done, or not with this nest: `cut` or `split`
  /// says what to change then.
  bool run(std::span<const Value> wanted) {
    for (auto value = wanted.rbegin(); value != wanted.rend(); ++value)
      if (!store(*value)) return false;
    return true;
  }

  std::optional<Split> split;
  std::optional<Cut> cut;
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
    if (!access) return made_.nest != whole_;  // another part has it
    if (!goes_apart(*access)) return false;
    const int32_t expr = evaluate(value, *access);
    if (expr >= 0) made_.stores.push_back({{value, *access}, expr});
    return expr >= 0;
  }

  /// Whether no two places of the kept loops have one element.
  bool goes_apart(const Access& access) const {
    return std::all_of(kept_.begin(), kept_.end(), [&](size_t loop) {
      return access.strides[loop] != 0 || made_.nest[loop].size == 1;
    });
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
      if (const auto along = spread(whole_, *loops, meta.sizes, wanted)) {
        const Way way{*along, Dims(meta.sizes.size(), 0)};
        return in_part(access_along(way, meta, [](int32_t dim) { return dim; }));
      }
      if (wanted && !split) split = wanted;
    }
    return std::nullopt;
  }

  Access in_part(Access access) const {
    for (size_t loop = 0; loop < first_.size(); ++loop) access.offset += first_[loop] * access.strides[loop];
    return access;
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
    return has_pieces(node.op) ? read_piece(node, result, *way) : compute_pointwise(node, *way);
  }

  int32_t read_piece(const Node& node, Value result, Way way) {
    const std::optional<Pieces> pieces = pieces_of(graph(), node);
    const auto found = piece_along(made_.nest, way, *pieces, cut);
    if (!found) return -1;
    const Type type = *type_of(graph().meta(result).dtype);
    const Piece* piece = *found;
    if (!piece) return made_.expressions.number(pieces->rest, type);
    for (size_t dim = 0; dim < way.first.size(); ++dim) way.first[dim] -= piece->first[dim];
    const TensorMeta& meta = graph().meta(piece->from);
    const int32_t element = evaluate(
        piece->from, access_along(way, meta, [&](int32_t dim) { return pieces->dim_of(dim); }));
    return element < 0 ? -1 : made_.expressions.cast(element, type);
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
  const LoopNest& whole_;
  const Dims first_;
  std::vector<size_t> kept_, reduced_, all_;
  std::unordered_map<int32_t, std::vector<Evaluated>> known_;  ///< by key
  Draft made_;
};

/// Loops of one step lead nowhere.
void drop_still_loops(Draft& draft) {
  for (size_t loop = draft.nest.size(); loop-- > 0;) {
    if (draft.nest[loop].size > 1) continue;
    const auto at = int64_t(loop);
    draft.nest.erase(draft.nest.begin() + at);
    for (Element& load : draft.loads) load.access.strides.erase(load.access.strides.begin() + at);
    for (Draft::Stored& stored : draft.stores)
      stored.to.access.strides.erase(stored.to.access.strides.begin() + at);
  }
}

constexpr int most_splits = 8;
constexpr size_t most_parts = 16;

/// All parts of one nest.
class Parts {
 public:
  Parts(const Source& source, std::span<const int32_t> members, const LoopNest& nest)
      : source_(source), members_(members), nest_(nest), pending_{{nest, Dims(nest.size(), 0)}} {}

  /// False where it cannot be done, or not with this nest: `split` says what to change then.
  bool run(std::span<const Value> wanted) {
    while (!pending_.empty()) {
      const Part part = std::move(pending_.back());
      pending_.pop_back();
      Drafting drafting(source_, members_, nest_, part);
      if (drafting.run(wanted)) {
        drafts_.push_back(drafting.take());
      } else if (drafting.cut && drafts_.size() + pending_.size() + 2 <= most_parts) {
        cut(part, *drafting.cut);
      } else {
        split = drafting.split;
        return false;
      }
    }
    return std::all_of(wanted.begin(), wanted.end(), [&](Value value) { return is_stored(value); });
  }

  std::optional<Split> split;
  std::vector<Draft> take() {
    for (Draft& draft : drafts_) drop_still_loops(draft);
    return std::move(drafts_);
  }

 private:
  void cut(const Part& part, const Cut& cut) {
    Part before = part, behind = part;
    before.nest[cut.loop].size = cut.steps;
    behind.nest[cut.loop].size -= cut.steps;
    behind.first[cut.loop] += cut.steps;
    pending_.push_back(std::move(behind));
    pending_.push_back(std::move(before));
  }

  /// Whether one part has all of it, or each its own.
  bool is_stored(Value value) const {
    int64_t count = 0;
    for (const Draft& draft : drafts_)
      for (const Draft::Stored& stored : draft.stores)
        if (stored.to.value == value) count += elements(draft.nest, stored.to.access);
    return count >= source_.graph.meta(value).numel();
  }

  const Source& source_;
  const std::span<const int32_t> members_;
  const LoopNest& nest_;
  std::vector<Part> pending_;
  std::vector<Draft> drafts_;
};

}  // namespace

std::vector<Draft> draft(const Source& source, std::span<const int32_t> members,
                         std::span<const Value> wanted) {
  LoopNest nest = widest_nest(source.graph, members);
  for (int attempt = 0; attempt <= most_splits; ++attempt) {
    Parts parts(source, members, nest);
    if (parts.run(wanted)) return parts.take();
    if (!parts.split || nest[parts.split->loop].size % parts.split->inner != 0) return {};
    const auto [loop, inner] = *parts.split;
    nest[loop].size /= inner;
    nest.insert(nest.begin() + int64_t(loop) + 1, {inner, nest[loop].reduced});
  }
  return {};
}

}  // namespace tandem::loops
