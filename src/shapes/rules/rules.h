/// The tables of our own shape rules, one family of operators a file; a row is an operator's full name and
/// the rule that answers for it.
#pragma once

#include "shapes/shapes.h"

#include <span>
#include <string_view>

namespace tandem::rules {

struct Row {
  std::string_view name;
  ShapeRule rule;
};

std::span<const Row> pointwise();
std::span<const Row> reductions();
std::span<const Row> normalisation();
std::span<const Row> convolutions();
std::span<const Row> pooling();
std::span<const Row> resampling();
std::span<const Row> indexing();
std::span<const Row> advanced_indexing();
std::span<const Row> losses();
std::span<const Row> linear_algebra();
std::span<const Row> spectral();
std::span<const Row> attention();
std::span<const Row> recurrent();
std::span<const Row> optimisers();
std::span<const Row> views();

/// Every row of every family.
std::vector<Row> all();

}  // namespace tandem::rules
