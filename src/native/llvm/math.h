/// Functions of floating point lanes that processors have no instruction for, each out of line: a function
/// has few values alive, so that all its lanes fit the registers. Kernels declare what they call; it is
/// compiled apart, once for many of them.
#pragma once

#include "loops/kernel.h"
#include "native/llvm/lanes.h"

#include <llvm/IR/Module.h>

namespace tandem::native {

/// Whether `op` is one of these functions.
bool is_math(loops::Op op);

/// What code may count on.
struct Target {
  std::string features;
  std::string tuned_for;
  int32_t register_bits;
};
void give_target(llvm::Function& function, const Target& target);

/// "exp_f32_32" and the like: the function, its type and its lanes.
llvm::Function& declare_math(llvm::Module& module, llvm::StringRef name, const Target& target);
/// Whether it is such a function that was declared and not defined.
bool is_math(const llvm::Function& function);
void define_math(llvm::Function& declared);

/// A call of `op` on a vector or scalar of floating point, as few calls as registers allow.
llvm::Value* call_math(Builder& builder, loops::Op op, llvm::Value* x, const Target& target);

/// The bodies.
llvm::Value* emit_exp(Builder& builder, const Lanes& lanes, llvm::Value* x);
llvm::Value* emit_expm1(Builder& builder, const Lanes& lanes, llvm::Value* x);
llvm::Value* emit_sigmoid(Builder& builder, const Lanes& lanes, llvm::Value* x);
llvm::Value* emit_tanh(Builder& builder, const Lanes& lanes, llvm::Value* x);
llvm::Value* emit_erf(Builder& builder, const Lanes& lanes, llvm::Value* x);
llvm::Value* emit_sin(Builder& builder, const Lanes& lanes, llvm::Value* x);
llvm::Value* emit_cos(Builder& builder, const Lanes& lanes, llvm::Value* x);
llvm::Value* emit_log(Builder& builder, const Lanes& lanes, llvm::Value* x);
llvm::Value* emit_log1p(Builder& builder, const Lanes& lanes, llvm::Value* x);

}  // namespace tandem::native
