#include "native/llvm/emitter.h"

#include <algorithm>

namespace tandem::native {
namespace {

template <class Visit>
void for_operands(const loops::Expr& expr, Visit visit) {
  if (expr.op == loops::Op::Load || expr.op == loops::Op::Number || expr.op == loops::Op::Index) return;
  for (int32_t operand : {expr.a, expr.b, expr.c})
    if (operand >= 0) visit(operand);
}

bool is_fold(const loops::Expr& expr) { return expr.op >= loops::Op::ReduceSum; }

}  // namespace

void Emitter::analyse() {
  varying_ = loops::varying(kernel_);
  passes_ = loops::passes(kernel_);
  needed_ = needed();
  lane_varying_ = lane_varying();
}

std::vector<bool> Emitter::needed() const {
  std::vector<bool> needed(kernel_.exprs.size());
  for (const loops::Store& store : kernel_.stores) needed[store.expr] = true;
  for (size_t i = kernel_.exprs.size(); i-- > 0;)
    if (needed[i]) for_operands(kernel_.exprs[i], [&](int32_t operand) { needed[operand] = true; });
  return needed;
}

std::vector<bool> Emitter::lane_varying() const {
  std::vector<bool> varies(kernel_.exprs.size());
  for (size_t i = 0; i < varies.size(); ++i) {
    const loops::Expr& expr = kernel_.exprs[i];
    bool any = is_fold(expr) && kernel_.lane_kept;
    if (expr.op == loops::Op::Load) any = kernel_.buffers[expr.a].lane != loops::Step::Zero;
    if (expr.op == loops::Op::Index) any = expr.a == kernel_.lane();
    if (!is_fold(expr)) for_operands(expr, [&](int32_t operand) { any = any || varies[operand]; });
    varies[i] = any;
  }
  return varies;
}

void Emitter::add_needed(int32_t expr, std::vector<bool>& wanted) const {
  if (!varying_[expr] || wanted[expr]) return;
  wanted[expr] = true;
  for_operands(kernel_.exprs[expr], [&](int32_t operand) { add_needed(operand, wanted); });
}

Emitter::Pass Emitter::pass_of(int32_t number) const {
  Pass pass;
  std::vector<bool> wanted(kernel_.exprs.size()), moved(kernel_.buffers.size());
  const int32_t count = static_cast<int32_t>(kernel_.exprs.size());
  for (int32_t i = 0; i < count; ++i) {
    const loops::Expr& expr = kernel_.exprs[i];
    if (!needed_[i] || !is_fold(expr) || passes_[i] != number + 1) continue;
    pass.folds.push_back(i);
    pass.has_sums |= expr.op == loops::Op::ReduceSum;
    add_needed(expr.a, wanted);
  }
  for (size_t i = 0; i < kernel_.stores.size(); ++i) {
    const loops::Store& store = kernel_.stores[i];
    if (!varying_[store.expr] || passes_[store.expr] != number) continue;
    pass.stores.push_back(static_cast<int32_t>(i));
    moved[store.buffer] = true;
    add_needed(store.expr, wanted);
  }
  for (int32_t i = 0; i < count; ++i) {
    if (!wanted[i]) continue;
    pass.exprs.push_back(i);
    if (kernel_.exprs[i].op == loops::Op::Load) moved[kernel_.exprs[i].a] = true;
  }
  for (size_t i = 0; i < moved.size(); ++i)
    if (moved[i]) pass.buffers.push_back(static_cast<int32_t>(i));
  return pass;
}

}  // namespace tandem::native
