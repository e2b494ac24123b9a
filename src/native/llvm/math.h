/// Functions of floating point lanes that processors have no instruction for, each out of line in the module
/// that needs it: a function has few values alive, so that all its lanes fit the registers.
#pragma once

#include "loops/kernel.h"
#include "native/llvm/lanes.h"

#include <llvm/IR/Module.h>

namespace tandem::native {

/// Whether `op` is one of these functions.
bool is_math(loops::Op op);

/// A call of `op` on a vector or scalar of floating point, as few calls as registers allow.
llvm::Value* call_math(Builder& builder, loops::Op op, llvm::Value* x, int32_t register_bits);

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
