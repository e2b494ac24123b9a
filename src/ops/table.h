/// The rows of the op table: what neither an operator's schema nor its tags say.
#pragma once

#include <span>

#include "ops/facts.h"

namespace tandem {

/// A row speaks for one overload ("aten::max.other", its out-variant included) or for all overloads of a name that have no row of their own
/// ("aten::max"), and for the in-place twin of a pointwise or random operator.
struct FactRow {
  const char* name;
  Kind kind = Kind::Other;
  int cost = 1;                             ///< work per result element, an add being 1
  std::vector<int> hidden_writes = {};      ///< arguments written although the schema does not say so
  bool side_effect = false;
  bool sizes_known = false;                 ///< though its tag warns of sizes that depend on data: they do for arguments that its shape rule refuses
};

std::span<const FactRow> pointwise_rows();
std::span<const FactRow> other_rows();

/// The row that speaks for an operator, or null.
const FactRow* find_row(const c10::OperatorName& name);

}  // namespace tandem
