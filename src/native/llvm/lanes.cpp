#include "native/llvm/lanes.h"

#include <llvm/IR/IntrinsicsX86.h>

namespace tandem::native {

Lanes::Lanes(Builder& builder, llvm::Type* type)
    : builder_(builder), type_(type), double_(type->getScalarType()->isDoubleTy()) {
  llvm::Type* element = builder.getIntNTy(double_ ? 64 : 32);
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  integer_type_ = vector ? llvm::FixedVectorType::get(element, vector->getNumElements()) : element;
  const llvm::Attribute features = builder.GetInsertBlock()->getParent()->getFnAttribute("target-features");
  fills_registers_ =
      features.getValueAsString().contains("+avx512vl") && type->getPrimitiveSizeInBits() % 512 == 0;
}

llvm::Value* Lanes::fma(llvm::Value* a, llvm::Value* b, llvm::Value* c) const {
  return builder_.CreateIntrinsic(llvm::Intrinsic::fma, {type_}, {a, b, c});
}

llvm::Value* Lanes::with_sign(llvm::Value* size, llvm::Value* sign) const {
  return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, size, sign);
}

llvm::Value* Lanes::polynomial(llvm::Value* x, std::span<const double> coefficients) const {
  llvm::Value* sum = number(coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = fma(sum, x, number(coefficients[i]));
  return sum;
}

llvm::Value* Lanes::power_of_two(llvm::Value* exponent) const {
  llvm::Value* biased = builder_.CreateAdd(exponent, integer(exponent_bias()));
  return from_bits(builder_.CreateShl(biased, integer(mantissa_bits())));
}

llvm::Value* Lanes::at_most(llvm::Value* x, double bound) const {
  return builder_.CreateSelect(builder_.CreateFCmpOGT(x, number(bound)), number(bound), x);
}

llvm::Value* Lanes::at_least(llvm::Value* x, double bound) const {
  return builder_.CreateSelect(builder_.CreateFCmpOLT(x, number(bound)), number(bound), x);
}

llvm::Value* Lanes::by_register(llvm::Intrinsic::ID function, std::initializer_list<llvm::Value*> operands,
                                llvm::ArrayRef<llvm::Value*> last) const {
  const unsigned lanes = double_ ? 8 : 16;
  llvm::Value* all = llvm::PoisonValue::get(type_);
  for (unsigned first = 0; first < llvm::cast<llvm::FixedVectorType>(type_)->getNumElements();
       first += lanes) {
    llvm::Type* part = llvm::FixedVectorType::get(type_->getScalarType(), lanes);
    Values arguments;
    for (llvm::Value* operand : operands)
      arguments.push_back(builder_.CreateExtractVector(part, operand, builder_.getInt64(first)));
    arguments.append(last.begin(), last.end());
    llvm::Value* result = builder_.CreateIntrinsic(function, {}, arguments);
    all = builder_.CreateInsertVector(type_, all, result, builder_.getInt64(first));
  }
  return all;
}

llvm::Value* Lanes::scaled_at_once(llvm::Value* x, llvm::Value* power) const {
  if (!fills_registers_) return nullptr;
  constexpr int as_the_thread_rounds = 4;
  llvm::Value* rounding = builder_.getInt32(as_the_thread_rounds);
  if (double_)
    return by_register(llvm::Intrinsic::x86_avx512_mask_scalef_pd_512, {x, power, x},
                       {builder_.getInt8(0xFF), rounding});
  return by_register(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {x, power, x},
                     {builder_.getInt16(0xFFFF), rounding});
}

// A division takes 512 bits as long as sixteen sums; the reciprocal that the processor estimates to 14 bits
// has all of them after one step of Newton's, and what is left of the quotient is divided by it once more.
llvm::Value* Lanes::quotient(llvm::Value* a, llvm::Value* b) const {
  if (!fills_registers_ || double_) return builder_.CreateFDiv(a, b);
  llvm::Value* estimate =
      by_register(llvm::Intrinsic::x86_avx512_rcp14_ps_512, {b, b}, {builder_.getInt16(0xFFFF)});
  llvm::Value* minus_b = builder_.CreateFNeg(b);
  llvm::Value* reciprocal = fma(fma(minus_b, estimate, number(1)), estimate, estimate);
  llvm::Value* near = builder_.CreateFMul(a, reciprocal);
  return fma(fma(minus_b, near, a), reciprocal, near);
}

Sum exact_sum(Builder& builder, llvm::Value* a, llvm::Value* b) {
  llvm::Value* sum = builder.CreateFAdd(a, b);
  llvm::Value* of_b = builder.CreateFSub(sum, a);
  llvm::Value* of_a = builder.CreateFSub(sum, of_b);
  return {sum, builder.CreateFAdd(builder.CreateFSub(a, of_a), builder.CreateFSub(b, of_b))};
}

}  // namespace tandem::native
