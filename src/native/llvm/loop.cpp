#include "native/llvm/loop.h"

namespace tandem::native {
namespace {

Values phis_for(Builder& builder, const Values& first, llvm::BasicBlock* from) {
  Values phis;
  for (llvm::Value* value : first) {
    llvm::PHINode* phi = builder.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, from);
    phis.push_back(phi);
  }
  return phis;
}

void add_incoming(const Values& phis, const Values& values, llvm::BasicBlock* from) {
  for (size_t i = 0; i < phis.size(); ++i) llvm::cast<llvm::PHINode>(phis[i])->addIncoming(values[i], from);
}

}  // namespace

// The test is at the end, behind a guard at the front: the shape that code generation expects of loops.
Values emit_loop(Builder& builder, const Range& range, const Values& carried,
                 llvm::function_ref<Values(llvm::Value* counter, const Values& carried)> body) {
  llvm::BasicBlock* before = builder.GetInsertBlock();
  llvm::Function* function = before->getParent();
  llvm::BasicBlock* steps = llvm::BasicBlock::Create(builder.getContext(), "steps", function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(builder.getContext(), "after", function);
  builder.CreateCondBr(builder.CreateICmpSLT(range.begin, range.end), steps, after);

  builder.SetInsertPoint(steps);
  const Values counter = phis_for(builder, {range.begin}, before);
  const Values taken = phis_for(builder, carried, before);
  const Values given = body(counter[0], taken);
  llvm::Value* next = builder.CreateAdd(counter[0], range.step, "", true, true);
  llvm::BasicBlock* last = builder.GetInsertBlock();
  builder.CreateCondBr(builder.CreateICmpSLT(next, range.end), steps, after);
  add_incoming(counter, {next}, last);
  add_incoming(taken, given, last);

  builder.SetInsertPoint(after);
  const Values results = phis_for(builder, carried, before);
  add_incoming(results, given, last);
  return results;
}

}  // namespace tandem::native
