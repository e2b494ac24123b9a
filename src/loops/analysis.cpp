#include "loops/operators.h"

#include <algorithm>

namespace tandem::loops {

std::vector<bool> varying(const Kernel& kernel) {
  std::vector<bool> varies;
  varies.reserve(kernel.exprs.size());
  for (const Expr& expr : kernel.exprs) {
    if (names_buffer(expr)) {
      varies.push_back(kernel.buffers[expr.a].reduced_varies);
    } else if (expr.op == Op::Index) {
      varies.push_back(expr.a >= kernel.kept);
    } else {
      auto operand_varies = [&](int32_t operand) { return varies[operand]; };
      varies.push_back(!is_fold(expr) && std::ranges::any_of(operands(expr), operand_varies));
    }
  }
  return varies;
}

std::vector<int32_t> passes(const Kernel& kernel) {
  std::vector<int32_t> done;
  done.reserve(kernel.exprs.size());
  for (const Expr& expr : kernel.exprs) {
    int32_t before = 0;
    for (int32_t operand : operands(expr)) before = std::max(before, done[operand]);
    done.push_back(before + is_fold(expr));
  }
  return done;
}

}  // namespace tandem::loops
