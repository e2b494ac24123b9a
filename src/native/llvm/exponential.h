/// What functions made of exponentials share.
#pragma once

#include "native/llvm/lanes.h"

namespace tandem::native {

/// x = exponent * ln 2 + rest, the rest at most half of ln 2 in size.
struct Reduced {
  llvm::Value* exponent;  ///< an integer
  llvm::Value* power;     ///< the same as a number of x's type
  llvm::Value* rest;
  llvm::Value* rest_error;  ///< what rounding took from it
};
Reduced reduce_by_ln2(Builder& builder, const Lanes& lanes, llvm::Value* x);

/// e^rest - 1 - rest.
llvm::Value* exponential_tail(Builder& builder, const Lanes& lanes, llvm::Value* rest);

/// e^x where that is a normal number.
llvm::Value* plain_exponential(Builder& builder, const Lanes& lanes, llvm::Value* x);

}  // namespace tandem::native
