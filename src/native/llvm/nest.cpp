#include "native/llvm/emitter.h"
#include "native/llvm/lanes.h"

namespace tandem::native {
namespace {

/// Sums are taken of so many steps by themselves before they are added to what came before, of which what
/// rounding takes is kept: the error of a sum grows with the number of terms that one number takes up.
constexpr int64_t steps_together = 64;

}  // namespace

void Emitter::emit_pass(int32_t number) {
  const Pass pass = pass_of(number);
  if (pass.folds.empty() && pass.stores.empty()) return;
  Values identities;
  for (int32_t fold : pass.folds) identities.push_back(identity(kernel_.exprs[fold]));
  for (int32_t sum : pass.sums) identities.push_back(identities[sum]);
  const Place before = place_;
  Values folded = emit_nest(pass, kernel_.kept, identities);
  place_ = before;
  for (size_t i = 0; i < pass.sums.size(); ++i)
    finish_sum(folded[pass.sums[i]], folded[pass.folds.size() + i]);
  for (size_t i = 0; i < pass.folds.size(); ++i) {
    const int32_t fold = pass.folds[i];
    values_[fold] = kernel_.lane_kept ? folded[i] : fold_lanes(kernel_.exprs[fold], folded[i]);
  }
}

/// Beside an infinite sum there is no error that could be told.
void Emitter::finish_sum(llvm::Value*& sum, llvm::Value* error) {
  llvm::Value* is_number = builder_.CreateFCmpORD(error, error);
  sum = builder_.CreateSelect(is_number, builder_.CreateFAdd(sum, error), sum);
}

llvm::Value* Emitter::reduced_size(int32_t dimension) {
  llvm::Value* length = size(dimension);
  if (!kernel_.cut || dimension != kernel_.kept) return length;
  llvm::Value* left = builder_.CreateSub(shape_at(1), builder_.CreateMul(place_.index[0], length));
  return smaller(length, left);
}

Values Emitter::emit_nest(const Pass& pass, int32_t dimension, const Values& folded) {
  if (dimension == kernel_.rank()) return emit_step(pass, nullptr, folded);
  const int64_t step = dimension == kernel_.lane() ? width_ : 1;
  const Range whole = {int64(0), reduced_size(dimension), int64(step)};
  if (pass.sums.empty()) return emit_steps(pass, dimension, whole, folded);
  const Range blocks = {whole.begin, whole.end, int64(step * steps_together)};
  return emit_loop(builder_, blocks, folded, [&](llvm::Value* begin, const Values& before) {
    Values own = before;
    for (size_t i = 0; i < pass.sums.size(); ++i)
      own[pass.sums[i]] = own[pass.folds.size() + i] = identity(kernel_.exprs[pass.folds[pass.sums[i]]]);
    llvm::Value* end = smaller(builder_.CreateAdd(begin, blocks.step), whole.end);
    own = emit_steps(pass, dimension, {begin, end, whole.step}, own);
    for (size_t i = 0; i < pass.sums.size(); ++i) {
      const size_t sum = static_cast<size_t>(pass.sums[i]), error = pass.folds.size() + i;
      const Sum total = exact_sum(builder_, before[sum], own[sum]);
      own[sum] = total.sum;
      own[error] = builder_.CreateFAdd(builder_.CreateFAdd(before[error], own[error]), total.error);
    }
    return own;
  });
}

Values Emitter::emit_steps(const Pass& pass, int32_t dimension, const Range& range, const Values& folded) {
  const bool along_lanes = dimension == kernel_.lane();
  llvm::Value* last = nullptr;
  if (along_lanes && width_ > 1) last = builder_.CreateSub(reduced_size(dimension), int64(width_));
  const Place before = place_;
  const Values results = emit_loop(builder_, range, folded, [&](llvm::Value* at, const Values& so_far) {
    place_ = before;
    place_.index[dimension] = last ? smaller(at, last) : at;
    if (along_lanes) return emit_step(pass, last ? at : nullptr, so_far);
    for (int32_t buffer : pass.buffers)
      place_.pointer[buffer] = moved(place_.pointer[buffer], kernel_.buffers[buffer].type,
                                     builder_.CreateMul(at, stride(buffer, dimension)));
    return emit_nest(pass, dimension + 1, so_far);
  });
  place_ = before;
  return results;
}

/// Lanes of elements before `new_from` were folded by the tile before.
Values Emitter::emit_step(const Pass& pass, llvm::Value* new_from, const Values& folded) {
  for (int32_t expr : pass.exprs)
    if (pass.stored_in[expr] >= 0)
      values_[expr] = load(pass.stored_in[expr]);
    else
      evaluate(expr);
  for (int32_t number : pass.stores) {
    const loops::Store& each = kernel_.stores[number];
    store(each.buffer, values_[each.expr], true);
  }
  if (pass.folds.empty()) return folded;
  Values operands;
  for (int32_t fold : pass.folds) operands.push_back(widened(values_[kernel_.exprs[fold].a]));
  if (new_from) {
    llvm::Value* old_lanes = builder_.CreateSub(new_from, place_.index[kernel_.lane()]);
    operands = without_old_lanes(pass, old_lanes, operands);
  }
  Values results;
  for (size_t i = 0; i < operands.size(); ++i) {
    const loops::Expr& fold = kernel_.exprs[pass.folds[i]];
    const int32_t nth = static_cast<int32_t>(fold.op) - static_cast<int32_t>(loops::Op::ReduceSum);
    static constexpr loops::Op steps[] = {loops::Op::Add, loops::Op::Mul, loops::Op::Max, loops::Op::Min};
    results.push_back(binary(steps[nth], fold.type, folded[i], operands[i]));
  }
  results.append(folded.begin() + static_cast<int64_t>(results.size()), folded.end());
  return results;
}

/// Only the last tile has such lanes: the others jump past.
Values Emitter::without_old_lanes(const Pass& pass, llvm::Value* old_lanes, const Values& operands) {
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  llvm::BasicBlock* masked = llvm::BasicBlock::Create(builder_.getContext(), "masked", before->getParent());
  llvm::BasicBlock* after = llvm::BasicBlock::Create(builder_.getContext(), "unmasked", before->getParent());
  builder_.CreateCondBr(builder_.CreateICmpSGT(old_lanes, int64(0)), masked, after);

  builder_.SetInsertPoint(masked);
  llvm::SmallVector<llvm::Constant*, 32> places;
  for (int32_t i = 0; i < width_; ++i) places.push_back(builder_.getInt32(static_cast<uint32_t>(i)));
  llvm::Value* count = builder_.CreateTrunc(old_lanes, builder_.getInt32Ty());
  llvm::Value* is_new =
      builder_.CreateICmpSGE(llvm::ConstantVector::get(places), builder_.CreateVectorSplat(width_, count));
  Values kept;
  for (size_t i = 0; i < operands.size(); ++i)
    kept.push_back(builder_.CreateSelect(is_new, operands[i], identity(kernel_.exprs[pass.folds[i]])));
  builder_.CreateBr(after);

  builder_.SetInsertPoint(after);
  Values results;
  for (size_t i = 0; i < operands.size(); ++i) {
    llvm::PHINode* phi = builder_.CreatePHI(operands[i]->getType(), 2);
    phi->addIncoming(operands[i], before);
    phi->addIncoming(kept[i], masked);
    results.push_back(phi);
  }
  return results;
}

/// Halves are folded onto each other until one lane is left.
llvm::Value* Emitter::fold_lanes(const loops::Expr& fold, llvm::Value* lanes) {
  static constexpr loops::Op steps[] = {loops::Op::Add, loops::Op::Mul, loops::Op::Max, loops::Op::Min};
  const int32_t nth = static_cast<int32_t>(fold.op) - static_cast<int32_t>(loops::Op::ReduceSum);
  if (width_ == 1) return lanes;
  for (int32_t half = width_ / 2; half > 0; half /= 2) {
    llvm::SmallVector<int, 32> low, high;
    for (int32_t i = 0; i < half; ++i) low.push_back(i), high.push_back(half + i);
    lanes = binary(steps[nth], fold.type, builder_.CreateShuffleVector(lanes, low),
                   builder_.CreateShuffleVector(lanes, high));
  }
  return builder_.CreateExtractElement(lanes, uint64_t{0});
}

}  // namespace tandem::native
