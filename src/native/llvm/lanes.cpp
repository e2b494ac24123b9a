#include "native/llvm/lanes.h"

namespace tandem::native {

Lanes::Lanes(Builder& builder, llvm::Type* type)
    : builder_(builder), type_(type), double_(type->getScalarType()->isDoubleTy()) {
  llvm::Type* element = builder.getIntNTy(double_ ? 64 : 32);
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  integer_type_ = vector ? llvm::FixedVectorType::get(element, vector->getNumElements()) : element;
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

Sum exact_sum(Builder& builder, llvm::Value* a, llvm::Value* b) {
  llvm::Value* sum = builder.CreateFAdd(a, b);
  llvm::Value* of_b = builder.CreateFSub(sum, a);
  llvm::Value* of_a = builder.CreateFSub(sum, of_b);
  return {sum, builder.CreateFAdd(builder.CreateFSub(a, of_a), builder.CreateFSub(b, of_b))};
}

}  // namespace tandem::native
