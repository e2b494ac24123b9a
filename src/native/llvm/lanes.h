/// Arithmetic on floating point values of one type, a vector or a scalar alike.
#pragma once

#include "native/llvm/loop.h"

#include <llvm/IR/Intrinsics.h>

#include <span>

namespace tandem::native {

class Lanes {
 public:
  /// Code may count on the features of the function that is built.
  Lanes(Builder& builder, llvm::Type* type);

  llvm::Value* number(double value) const { return llvm::ConstantFP::get(type_, value); }
  llvm::Value* integer(int64_t value) const { return llvm::ConstantInt::getSigned(integer_type_, value); }
  bool is_double() const { return double_; }
  llvm::Type* type() const { return type_; }
  llvm::Type* integer_type() const { return integer_type_; }

  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c) const;
  llvm::Value* abs(llvm::Value* x) const { return unary(llvm::Intrinsic::fabs, x); }
  llvm::Value* nearest(llvm::Value* x) const { return unary(llvm::Intrinsic::roundeven, x); }
  llvm::Value* with_sign(llvm::Value* size, llvm::Value* sign) const;
  /// The polynomial with these coefficients, the constant one first.
  llvm::Value* polynomial(llvm::Value* x, std::span<const double> coefficients) const;
  llvm::Value* bits(llvm::Value* x) const { return builder_.CreateBitCast(x, integer_type_); }
  llvm::Value* from_bits(llvm::Value* bits) const { return builder_.CreateBitCast(bits, type_); }
  /// Two to the power of an integer for which that is a normal number.
  llvm::Value* power_of_two(llvm::Value* exponent) const;
  /// x times two to the power of a whole number of the same type, rounded once, where no processor's own
  /// instruction does that: null.
  llvm::Value* scaled_at_once(llvm::Value* x, llvm::Value* power) const;
  /// a / b, for b from 1 to 2^32 and a that is no larger than 2 in size; where all bits of b are set it may
  /// be a last place off.
  llvm::Value* quotient(llvm::Value* a, llvm::Value* b) const;
  /// `x`, or the bound where it is beyond; NaN stays.
  llvm::Value* at_most(llvm::Value* x, double bound) const;
  llvm::Value* at_least(llvm::Value* x, double bound) const;

  int mantissa_bits() const { return double_ ? 52 : 23; }
  int exponent_bias() const { return double_ ? 1023 : 127; }

 private:
  llvm::Value* unary(llvm::Intrinsic::ID function, llvm::Value* x) const {
    return builder_.CreateUnaryIntrinsic(function, x);
  }
  /// What one instruction gives for each register of the operands, which fill registers of 512 bits.
  llvm::Value* by_register(llvm::Intrinsic::ID function, std::initializer_list<llvm::Value*> operands,
                           llvm::ArrayRef<llvm::Value*> last) const;

  Builder& builder_;
  llvm::Type *type_, *integer_type_;
  bool double_;
  bool fills_registers_;  ///< of 512 bits, which the processor has
};

/// a + b, and what rounding took from it; NaN beside a sum that is not finite.
struct Sum {
  llvm::Value *sum, *error;
};
Sum exact_sum(Builder& builder, llvm::Value* a, llvm::Value* b);

}  // namespace tandem::native
