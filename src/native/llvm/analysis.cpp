#include "native/llvm/emitter.h"

#include "loops/operators.h"

#include <algorithm>

namespace tandem::native {

using loops::is_fold;

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
    if (needed[i])
      for (int32_t operand : operands(kernel_.exprs[i])) needed[operand] = true;
  return needed;
}

std::vector<bool> Emitter::lane_varying() const {
  std::vector<bool> varies(kernel_.exprs.size());
  for (size_t i = 0; i < varies.size(); ++i) {
    const loops::Expr& expr = kernel_.exprs[i];
    bool any = is_fold(expr) && kernel_.lane_kept;
    if (names_buffer(expr)) any = kernel_.buffers[expr.a].lane != loops::Step::Zero;
    if (expr.op == loops::Op::Index) any = expr.a == kernel_.lane();
    if (!is_fold(expr))
      for (int32_t operand : operands(expr)) any = any || varies[operand];
    varies[i] = any;
  }
  return varies;
}

void Emitter::add_needed(int32_t expr, const Pass& pass, std::vector<bool>& wanted) const {
  if (!varying_[expr] || wanted[expr]) return;
  wanted[expr] = true;
  if (pass.stored_in[expr] >= 0) return;
  for (int32_t operand : operands(kernel_.exprs[expr])) add_needed(operand, pass, wanted);
}

/// Whether all that it does along reduced dimensions is so little that wider tiles have room in the
/// registers.
bool Emitter::folds_columns() const {
  const auto is_little = [](const loops::Expr& expr) {
    const bool is_narrow = expr.type != loops::Type::I64 && expr.type != loops::Type::F64;
    return is_narrow && (expr.op < loops::Op::Exp || expr.op > loops::Op::Cos);
  };
  const auto is_gathered = [](const loops::Buffer& buffer) { return buffer.lane == loops::Step::Any; };
  return kernel_.width > 1 && kernel_.exprs.size() <= 8 && std::ranges::any_of(kernel_.exprs, is_fold) &&
         std::ranges::all_of(kernel_.exprs, is_little) && std::ranges::none_of(kernel_.buffers, is_gathered);
}

Emitter::Pass Emitter::pass_of(int32_t number) const {
  Pass pass;
  std::vector<bool> wanted(kernel_.exprs.size()), moved(kernel_.buffers.size());
  const int32_t count = static_cast<int32_t>(kernel_.exprs.size());
  pass.stored_in.assign(kernel_.exprs.size(), -1);
  for (const loops::Store& store : kernel_.stores)
    if (varying_[store.expr] && passes_[store.expr] < number) pass.stored_in[store.expr] = store.buffer;
  for (int32_t i = 0; i < count; ++i) {
    const loops::Expr& expr = kernel_.exprs[i];
    if (!needed_[i] || !is_fold(expr) || passes_[i] != number + 1) continue;
    pass.folds.push_back(i);
    if (expr.op == loops::Op::ReduceSum && loops::kind_of(expr.type) == loops::Floats)
      pass.sums.push_back(static_cast<int32_t>(pass.folds.size()) - 1);
    add_needed(expr.a, pass, wanted);
  }
  for (size_t i = 0; i < kernel_.stores.size(); ++i) {
    const loops::Store& store = kernel_.stores[i];
    if (!varying_[store.expr] || passes_[store.expr] != number) continue;
    pass.stores.push_back(static_cast<int32_t>(i));
    moved[store.buffer] = true;
    add_needed(store.expr, pass, wanted);
  }
  for (int32_t i = 0; i < count; ++i) {
    if (!wanted[i]) continue;
    pass.exprs.push_back(i);
    if (pass.stored_in[i] >= 0)
      moved[pass.stored_in[i]] = true;
    else if (names_buffer(kernel_.exprs[i]))
      moved[kernel_.exprs[i].a] = true;
  }
  for (size_t i = 0; i < moved.size(); ++i)
    if (moved[i]) pass.buffers.push_back(static_cast<int32_t>(i));
  return pass;
}

}  // namespace tandem::native
