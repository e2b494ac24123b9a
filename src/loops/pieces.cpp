#include "loops/pieces.h"

#include <algorithm>
#include <unordered_map>

#include "ops/by_operator.h"
#include "ops/facts.h"

namespace tandem::loops {
namespace {

/// Of a node that has a result and at least one tensor.
struct Putting {
  const Graph& graph;
  const Node& node;

  const c10::IValue& constant(size_t i) const { return std::get<c10::IValue>(node.arguments[i]); }
  const TensorMeta& result() const { return graph.meta(std::get<Value>(node.results[0])); }
  Value tensor() const { return std::get<Value>(node.arguments[0]); }
  int64_t rank() const { return std::ssize(result().sizes); }
  /// An argument that names a dimension of the result, or a place along one.
  int64_t wrapped(size_t i, int64_t size) const {
    const int64_t named = constant(i).toInt();
    return named < 0 ? named + size : named;
  }
  /// All of the result.
  Piece whole(Value from) const {
    const Dims zeros(size_t(rank()), 0);
    return {from, zeros, result().sizes, zeros};
  }
  /// So many places along a dimension, and all of the others.
  Piece slab(Value from, int64_t dim, int64_t begin, int64_t size) const {
    Piece piece = whole(from);
    piece.first[size_t(dim)] = piece.begin[size_t(dim)] = begin;
    piece.end[size_t(dim)] = begin + size;
    return piece;
  }
};

using Put = std::optional<Pieces> (*)(const Putting&);

/// Tensors without elements are none, whatever their rank: libtorch lets those of one dimension pass.
std::optional<Pieces> joined(const Putting& p) {
  Pieces made;
  const int64_t dim = p.wrapped(1, p.rank());
  int64_t begin = 0;
  for (Value part : std::get<std::vector<Value>>(p.node.arguments[0])) {
    const TensorMeta& meta = p.graph.meta(part);
    if (meta.numel() == 0) continue;
    made.all.push_back(p.slab(part, dim, begin, meta.sizes[size_t(dim)]));
    begin = made.all.back().end[size_t(dim)];
  }
  return made;
}

std::optional<Pieces> stacked(const Putting& p) {
  Pieces made;
  made.missing = int32_t(p.wrapped(1, p.rank()));
  for (Value part : std::get<std::vector<Value>>(p.node.arguments[0]))
    made.all.push_back(p.slab(part, made.missing, std::ssize(made.all), 1));
  return made;
}

/// The last dimension comes first among what is added before and behind each; what is less than none is cut
/// off.
std::optional<Pieces> padded(const Putting& p) {
  const std::vector<int64_t> added = p.constant(1).toIntVector();
  const Dims& sizes = p.graph.meta(p.tensor()).sizes;
  Piece piece = p.whole(p.tensor());
  bool has_any = true;
  for (size_t i = 0; i < added.size() / 2; ++i) {
    const size_t dim = sizes.size() - 1 - i;
    piece.first[dim] = added[2 * i];
    piece.begin[dim] = std::max<int64_t>(piece.first[dim], 0);
    piece.end[dim] = std::min(piece.first[dim] + sizes[dim], piece.end[dim]);
    has_any = has_any && piece.begin[dim] < piece.end[dim];
  }
  Pieces made{.rest = p.constant(2).toScalar()};
  if (has_any && p.graph.meta(p.tensor()).numel() > 0) made.all.push_back(std::move(piece));
  return made;
}

std::optional<Pieces> gradient_of_slice(const Putting& p) {
  if (p.constant(5).toInt() != 1) return std::nullopt;
  const auto dim = p.wrapped(2, p.rank());
  const int64_t size = p.result().sizes[size_t(dim)], count = p.graph.meta(p.tensor()).sizes[size_t(dim)];
  Pieces made;
  if (count > 0) made.all.push_back(p.slab(p.tensor(), dim, std::max<int64_t>(p.wrapped(3, size), 0), count));
  return made;
}

std::optional<Pieces> gradient_of_select(const Putting& p) {
  Pieces made;
  made.missing = int32_t(p.wrapped(2, p.rank()));
  const int64_t place = p.wrapped(3, p.result().sizes[size_t(made.missing)]);
  made.all.push_back(p.slab(p.tensor(), made.missing, place, 1));
  return made;
}

const std::unordered_map<std::string, Put>& table() {
  static const std::unordered_map<std::string, Put> rows = {
      {"aten::cat", joined},
      {"aten::stack", stacked},
      {"aten::constant_pad_nd", padded},
      {"aten::slice_backward", gradient_of_slice},
      {"aten::select_backward", gradient_of_select},
  };
  return rows;
}

Put find_row(const c10::OperatorHandle& op) {
  static ByOperator<Put> found;
  return found.of(op, [](const c10::OperatorHandle& asked) -> Put {
    const auto row = table().find(full_name(asked));
    return row == table().end() ? nullptr : row->second;
  });
}

/// At the outermost loop that leads past a place of the result: parts of it may be cut again.
std::optional<Cut> cut_at(const LoopNest& nest, const Way& way, size_t dim, int64_t place) {
  std::optional<size_t> outermost;
  for (size_t loop = 0; loop < nest.size(); ++loop)
    if (way.loops[loop].dim == int32_t(dim) && nest[loop].size > 1)
      if (!outermost || way.loops[loop].step > way.loops[*outermost].step) outermost = loop;
  if (!outermost || nest[*outermost].reduced) return std::nullopt;
  const int64_t step = way.loops[*outermost].step, before = place - way.first[dim];
  return Cut{*outermost, std::clamp<int64_t>((before + step - 1) / step, 1, nest[*outermost].size - 1)};
}

}  // namespace

bool has_pieces(const c10::OperatorHandle& op) { return find_row(op) != nullptr; }

std::optional<Pieces> pieces_of(const Graph& graph, const Node& node) {
  return find_row(node.op)({graph, node});
}

std::optional<const Piece*> piece_along(const LoopNest& nest, const Way& way, const Pieces& pieces,
                                        std::optional<Cut>& cut) {
  Dims last = way.first;
  for (size_t loop = 0; loop < nest.size(); ++loop)
    if (const auto [dim, step] = way.loops[loop]; dim >= 0) last[size_t(dim)] += step * (nest[loop].size - 1);
  for (const Piece& piece : pieces.all) {
    bool is_apart = false;
    std::optional<Cut> needed;
    bool is_inside = true;
    for (size_t dim = 0; dim < last.size(); ++dim) {
      is_apart = is_apart || last[dim] < piece.begin[dim] || way.first[dim] >= piece.end[dim];
      for (int64_t border : {piece.begin[dim], piece.end[dim]}) {
        if (border <= way.first[dim] || border > last[dim]) continue;
        is_inside = false;
        if (!needed) needed = cut_at(nest, way, dim, border);
      }
    }
    if (is_apart) continue;
    if (is_inside) return &piece;
    cut = needed;
    return std::nullopt;
  }
  return nullptr;
}

}  // namespace tandem::loops
