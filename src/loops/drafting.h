/// One kernel's expressions, looked up from what is stored backwards.
#pragma once

#include "loops/draft.h"
#include "loops/pieces.h"
#include "loops/rows.h"

#include <vector>

namespace tandem::loops {

/// Places of a nest that one kernel computes: so many steps of each loop, behind so many.
struct Part {
  LoopNest nest;
  Dims first;
};

/// One attempt with one nest, for a part of it.
class Drafting {
 public:
  Drafting(const Source& source, std::span<const int32_t> members, const LoopNest& whole, const Part& part);

  /// Stores what is there of these. False where it cannot be done, or not with this nest: `cut` or `split`
  /// says what to change then.
  bool run(std::span<const Value> wanted);

  std::optional<Split> split;
  std::optional<Cut> cut;
  Draft take() { return std::move(made_); }

 private:
  struct Evaluated {
    int32_t key;
    Access access;
    int32_t expr;
  };

  const Graph& graph() const { return source_.graph; }
  bool is_member(int32_t node) const;
  /// What is computed here twice is computed once. What is loaded stays apart from it: it has the same bits
  /// each time it is asked for.
  int32_t key(Value anchor) const;
  bool store(Value value);

  /// Whether no two places of the kept loops have one element.
  bool goes_apart(const Access& access) const;
  bool is_whole(Value value, const Access& access);
  /// Where its dimensions follow each other as the loops do: all of them, or those that are kept.
  std::optional<Access> access_by_sizes(Value value);
  Access in_part(Access access) const;
  /// The expression of the element there; -1 where there is none.
  int32_t evaluate(Value value, const Access& access);
  int32_t load(Value anchor, const Access& access);
  int32_t compute(const Node& node, Value result, const Access& access);
  int32_t read_piece(const Node& node, Value result, Way way);
  int32_t compute_pointwise(const Node& node, const Way& way);
  int32_t compute_fold(const Node& node, const FoldRow& row, Value result, const Way& way);
  /// What is computed twice may be rounded otherwise the second time.
  bool is_loaded(Value operand) const;
  /// The least number of an element that a fold gives; NaN, which it gives where there is one, is equal to
  /// none.
  int32_t place_of_first(Op fold, int32_t element, const Access& number);
  /// Where the operand's first element is that a place of the result folds.
  Access access_of_kept(const Node& node, Value operand, Value result, const Way& way) const;

  /// The folded dimensions go along the reduced loops, along which the result stays where it is: in the
  /// operand, and numbering what is folded.
  bool add_folded(const Node& node, Value operand, const Way& way, Access& access, Access& number);

  const Source& source_;
  const std::span<const int32_t> members_;
  const LoopNest& whole_;
  const Dims first_;
  std::vector<size_t> kept_, reduced_, all_;
  std::vector<Evaluated> known_;
  Draft made_;
};

}  // namespace tandem::loops
