/// The rows of pointwise operators, by what they are about.
#pragma once

#include "loops/rows.h"

#include <span>

namespace tandem::loops {

using Made = std::optional<int32_t>;

struct PointwiseRow {
  const char* op;
  LowerNode lower;
};

/// What computes with numbers.
std::span<const PointwiseRow> arithmetic_rows();
/// What compares, chooses, copies and fills.
std::span<const PointwiseRow> logic_rows();

inline bool is_of_floats(const Lowering& l) { return is_real(l.type()); }

}  // namespace tandem::loops
