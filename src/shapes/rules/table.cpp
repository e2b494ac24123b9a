#include "shapes/rules/rules.h"

namespace tandem {

std::vector<rules::Row> rules::all() {
  std::vector<Row> rows;
  for (auto family :
       {pointwise, reductions, normalisation, convolutions, pooling, resampling, indexing, advanced_indexing,
        losses, linear_algebra, spectral, attention, recurrent, optimisers, views}) {
    auto of_family = family();
    rows.insert(rows.end(), of_family.begin(), of_family.end());
  }
  return rows;
}

ShapeRule find_shape_rule(const std::string& full_name) {
  static const auto* table = [] {
    auto* by_name = new std::unordered_map<std::string_view, ShapeRule>;
    for (const rules::Row& row : rules::all()) by_name->emplace(row.name, row.rule);
    return by_name;
  }();
  auto row = table->find(full_name);
  return row == table->end() ? nullptr : row->second;
}

}  // namespace tandem
