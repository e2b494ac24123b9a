#include <unordered_map>

#include "loops/pointwise_table.h"
#include "ops/by_operator.h"
#include "ops/facts.h"

namespace tandem::loops {
namespace {

using Rows = std::unordered_map<std::string, LowerNode>;

const Rows& rows() {
  static const Rows all = [] {
    Rows made;
    for (const auto& table : {arithmetic_rows(), logic_rows()})
      for (const PointwiseRow& row : table) made.emplace(row.op, row.lower);
    return made;
  }();
  return all;
}

}  // namespace

LowerNode find_pointwise_row(const c10::OperatorHandle& op) {
  static ByOperator<LowerNode> found;
  return found.of(op, [](const c10::OperatorHandle& asked) -> LowerNode {
    const auto row = rows().find(full_name(asked));
    return row == rows().end() ? nullptr : row->second;
  });
}

}  // namespace tandem::loops
