/// Counted loops in IR.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>

namespace tandem::native {

/// Only products that feed sums are contracted; nothing else may change what is computed.
using Builder = llvm::IRBuilder<>;
using Values = llvm::SmallVector<llvm::Value*, 8>;

/// A loop's counter runs from `begin` in steps while it is less than `end`.
struct Range {
  llvm::Value *begin, *end, *step;
};

/// What is carried from step to step begins as `carried`; the body gives it on, and what the last step gave
/// is returned.
Values emit_loop(Builder& builder, const Range& range, const Values& carried,
                 llvm::function_ref<Values(llvm::Value* counter, const Values& carried)> body);

}  // namespace tandem::native
