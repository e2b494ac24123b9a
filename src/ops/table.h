/// The rows of the op table: what neither an operator's schema nor its tags say.
#pragma once

#include <span>

#include "ops/facts.h"

namespace tandem {

/// What a row says besides kind and cost; OpFacts explains each.
enum class Flag : uint16_t {
  None = 0,
  SideEffect = 1 << 0,
  /// whatever its tag says: its shape rule refuses the other arguments
  SizesKnown = 1 << 1,
  DataDependent = 1 << 2,
  Unset = 1 << 3,
  Unrecordable = 1 << 4,
  FickleBackward = 1 << 5,
  MixesDevices = 1 << 6,
  ReplacesMemory = 1 << 7,
  Identity = 1 << 8,
  CountsFromStorage = 1 << 9,
  SetsSizes = 1 << 10,
  MovesDimensions = 1 << 11,
  MindsGradMode = 1 << 12,
};
constexpr Flag operator|(Flag a, Flag b) { return Flag(uint16_t(a) | uint16_t(b)); }
constexpr bool has(Flag flags, Flag flag) { return (uint16_t(flags) & uint16_t(flag)) != 0; }

/// A row speaks for one overload ("aten::max.other", its out-variant included) or for all overloads of a name
/// that have no row of their own
/// ("aten::max"), and for the in-place twin of a pointwise or random operator.
struct FactRow {
  const char* name;
  Kind kind = Kind::Other;
  /// work per result element, per element read of what folds; an add is 1
  int cost = 1;
  Flag flags = Flag::None;
  std::vector<int> hidden_writes = {};  ///< arguments written although the schema does not say so
};

/// Speaks for every operator whose name begins so, besides the row that it has.
struct FamilyRow {
  std::string_view prefix;
  Flag flags;
};

std::span<const FactRow> pointwise_rows();
std::span<const FactRow> other_rows();
std::span<const FactRow> special_rows();
std::span<const FamilyRow> family_rows();

/// The row that speaks for an operator, or null.
const FactRow* find_row(const c10::OperatorName& name);

}  // namespace tandem
