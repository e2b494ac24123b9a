#include "native/llvm/emitter.h"
#include "native/llvm/plugin.h"

#include <algorithm>

namespace tandem::native {

Emitter::Emitter(const loops::Kernel& kernel, const Target& target, llvm::Module& module)
    : kernel_(kernel), target_(target), module_(module), builder_(module.getContext()), width_(kernel.width) {
  llvm::FastMathFlags flags;
  flags.setAllowContract();
  builder_.setFastMathFlags(flags);
  analyse();
}

void Emitter::emit() {
  llvm::Function* function = declare();
  builder_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "", function));
  values_.assign(kernel_.exprs.size(), nullptr);
  emit_loop(builder_, {function->getArg(3), function->getArg(4), int64(1)}, {},
            [&](llvm::Value* unit, const Values&) {
              emit_unit(unit);
              return Values();
            });
  builder_.CreateRetVoid();
}

llvm::Function* Emitter::declare() {
  llvm::LLVMContext& context = module_.getContext();
  llvm::Type *pointer = llvm::PointerType::get(context, 0), *count = builder_.getInt64Ty();
  auto* signature =
      llvm::FunctionType::get(builder_.getVoidTy(), {pointer, pointer, pointer, count, count}, false);
  auto* function = llvm::Function::Create(signature, llvm::Function::ExternalLinkage, kernel_symbol, module_);
  give_target(*function, target_);
  for (unsigned i = 0; i < 3; ++i) function->addParamAttr(i, llvm::Attribute::NoAlias);
  buffers_ = function->getArg(0);
  shape_ = function->getArg(1);
  numbers_ = function->getArg(2);
  return function;
}

void Emitter::emit_unit(llvm::Value* unit) {
  find_unit(unit);
  evaluate_before_tiles();
  if (kernel_.lane_kept && kernel_.kept > 0)
    emit_tiles();
  else
    emit_tile();
}

/// The place of a unit, from its number: the last dimension runs fastest.
void Emitter::find_unit(llvm::Value* unit) {
  place_.index.assign(kernel_.rank(), nullptr);
  llvm::Value* rest = unit;
  for (int32_t d = kernel_.kept - 1; d >= 0; --d) {
    llvm::Value* count = size(d);
    llvm::Value* unit_lanes = kernel_.lane_kept && d == kernel_.lane() ? shape_at(0) : nullptr;
    if (unit_lanes) {
      llvm::Value* rounded = builder_.CreateAdd(count, builder_.CreateSub(unit_lanes, int64(1)));
      count = builder_.CreateUDiv(rounded, unit_lanes);
    }
    llvm::Value* index = d > 0 ? builder_.CreateURem(rest, count) : rest;
    if (d > 0) rest = builder_.CreateUDiv(rest, count);
    place_.index[d] = unit_lanes ? builder_.CreateMul(index, unit_lanes) : index;
  }
  place_.pointer.clear();
  for (size_t b = 0; b < kernel_.buffers.size(); ++b) {
    const int32_t buffer = static_cast<int32_t>(b);
    llvm::Value* pointer = base(buffer);
    for (int32_t d = 0; d < kernel_.kept; ++d)
      if (d != kernel_.lane() || !kernel_.lane_kept)
        pointer =
            moved(pointer, kernel_.buffers[b].type, builder_.CreateMul(place_.index[d], stride(buffer, d)));
    place_.pointer.push_back(pointer);
  }
}

/// The last tile is moved back to end with the dimension; what it has in common with the one before it is
/// computed twice.
void Emitter::emit_tiles() {
  const int32_t lane = kernel_.lane();
  llvm::Value *begin = place_.index[lane], *length = size(lane);
  llvm::Value* end = smaller(builder_.CreateAdd(begin, shape_at(0)), length);
  llvm::Value* last = builder_.CreateSub(length, int64(width_));
  if (folds_columns()) begin = emit_wide_tiles(begin, end);
  emit_loop(builder_, {begin, end, int64(width_)}, {}, [&](llvm::Value* at, const Values&) {
    place_.index[lane] = width_ > 1 ? smaller(at, last) : at;
    emit_tile();
    return Values();
  });
}

/// As many as there are whole ones of; gives where they end. Rows of a matrix lie far apart: the more of one
/// is read at once the better.
llvm::Value* Emitter::emit_wide_tiles(llvm::Value* begin, llvm::Value* end) {
  const int32_t lane = kernel_.lane();
  width_ *= 2;
  llvm::Value* past_last = builder_.CreateSub(end, int64(width_ - 1));
  const Range range = {begin, past_last, int64(width_)};
  const Values ends = emit_loop(builder_, range, {begin}, [&](llvm::Value* at, const Values&) {
    place_.index[lane] = at;
    emit_tile();
    return Values{builder_.CreateAdd(at, int64(width_))};
  });
  width_ = kernel_.width;
  return ends.front();
}

void Emitter::emit_tile() {
  int32_t last = 0;
  for (size_t i = 0; i < passes_.size(); ++i)
    if (needed_[i]) last = std::max(last, passes_[i]);
  for (int32_t number = 0; number <= last; ++number) {
    evaluate_unreduced(number);
    emit_pass(number);
  }
  store_unreduced();
}

void Emitter::evaluate_before_tiles() {
  for (size_t i = 0; i < kernel_.exprs.size(); ++i)
    if (needed_[i] && !varying_[i] && !lane_varying_[i] && passes_[i] == 0) evaluate(static_cast<int32_t>(i));
}

void Emitter::evaluate_unreduced(int32_t passes) {
  for (size_t i = 0; i < kernel_.exprs.size(); ++i) {
    const bool before_tiles = !lane_varying_[i] && passes == 0;
    const bool is_fold = kernel_.exprs[i].op >= loops::Op::ReduceSum;
    if (needed_[i] && !varying_[i] && passes_[i] == passes && !before_tiles && !is_fold)
      evaluate(static_cast<int32_t>(i));
  }
}

void Emitter::store_unreduced() {
  for (const loops::Store& each : kernel_.stores)
    if (!varying_[each.expr]) store(each.buffer, values_[each.expr], kernel_.lane_kept);
}

}  // namespace tandem::native
