#include "native/llvm/emitter.h"
#include "native/llvm/math.h"

#include <limits>

namespace tandem::native {
namespace {

using loops::Op;
using loops::Type;

bool is_real(Type type) { return type == Type::F32 || type == Type::F64; }
bool is_unsigned(Type type) { return type == Type::Bool || type == Type::U8; }

llvm::Intrinsic::ID rounding(Op op) {
  switch (op) {
    case Op::Sqrt:
      return llvm::Intrinsic::sqrt;
    case Op::Floor:
      return llvm::Intrinsic::floor;
    case Op::Ceil:
      return llvm::Intrinsic::ceil;
    case Op::Round:
      return llvm::Intrinsic::roundeven;
    case Op::Trunc:
      return llvm::Intrinsic::trunc;
    default:
      return llvm::Intrinsic::not_intrinsic;
  }
}

llvm::CmpInst::Predicate predicate(Op op, Type type) {
  using P = llvm::CmpInst::Predicate;
  static constexpr P real[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OLT, P::FCMP_OLE, P::FCMP_OGT, P::FCMP_OGE};
  static constexpr P with_sign[] = {P::ICMP_EQ,  P::ICMP_NE,  P::ICMP_SLT,
                                    P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE};
  static constexpr P without_sign[] = {P::ICMP_EQ,  P::ICMP_NE,  P::ICMP_ULT,
                                       P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
  const int32_t nth = static_cast<int32_t>(op) - static_cast<int32_t>(Op::Eq);
  return is_real(type) ? real[nth] : is_unsigned(type) ? without_sign[nth] : with_sign[nth];
}

llvm::Type* like(llvm::Value* shape, llvm::Type* element) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(shape->getType());
  return vector ? llvm::FixedVectorType::get(element, vector->getNumElements()) : element;
}

}  // namespace

void Emitter::evaluate(int32_t expr) { values_[expr] = value_of(kernel_.exprs[expr]); }

llvm::Value* Emitter::value_of(const loops::Expr& expr) {
  switch (expr.op) {
    case Op::Load:
      return load(expr.a);
    case Op::Number:
      return load_number(expr);
    case Op::Index:
      return index_of(expr.a);
    case Op::Offset:
      return offset_of(expr.a, element(expr.type));
    default:
      break;
  }
  if (expr.op == Op::Cast) return cast(kernel_.exprs[expr.a].type, expr.type, values_[expr.a]);
  if (expr.b < 0) return unary(expr, values_[expr.a]);
  llvm::Value *a = values_[expr.a], *b = values_[expr.b], *c = expr.c < 0 ? nullptr : values_[expr.c];
  const bool any_wide =
      a->getType()->isVectorTy() || b->getType()->isVectorTy() || (c && c->getType()->isVectorTy());
  if (any_wide) a = widened(a), b = widened(b), c = c ? widened(c) : nullptr;
  if (expr.op == Op::Select) return builder_.CreateSelect(a, b, c);
  if (expr.op >= Op::Eq && expr.op <= Op::Ge) return compare(expr.op, kernel_.exprs[expr.a].type, a, b);
  return binary(expr.op, expr.type, a, b);
}

llvm::Value* Emitter::index_of(int32_t dimension) {
  llvm::Value* at = place_.index[dimension];
  if (dimension != kernel_.lane() || width_ == 1) return at;
  return builder_.CreateAdd(widened(at), lane_numbers(at->getType()));
}

llvm::Value* Emitter::offset_of(int32_t buffer, llvm::Type* type) {
  const loops::Buffer& of = kernel_.buffers[buffer];
  llvm::Value* distance = builder_.CreatePtrDiff(in_memory(of.type), lane_address(buffer), base(buffer));
  llvm::Value* at = builder_.CreateTrunc(distance, type);
  if (!has_lanes(buffer)) return at;
  llvm::Value* steps = lane_numbers(type);
  if (of.lane == loops::Step::Any)
    steps = builder_.CreateMul(steps, widened(builder_.CreateTrunc(stride(buffer, kernel_.lane()), type)));
  return builder_.CreateAdd(widened(at), steps);
}

llvm::Value* Emitter::lane_numbers(llvm::Type* type) {
  llvm::SmallVector<llvm::Constant*, 32> numbers;
  for (int32_t i = 0; i < width_; ++i)
    numbers.push_back(llvm::ConstantInt::get(type, static_cast<uint64_t>(i)));
  return llvm::ConstantVector::get(numbers);
}

llvm::Value* Emitter::unary(const loops::Expr& expr, llvm::Value* a) {
  if (is_math(expr.op)) return call_math(builder_, expr.op, a, target_);
  if (const auto function = rounding(expr.op)) return builder_.CreateUnaryIntrinsic(function, a);
  if (expr.op == Op::Not) return builder_.CreateNot(a);
  if (is_real(expr.type))
    return expr.op == Op::Neg ? builder_.CreateFNeg(a)
                              : builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
  if (expr.op == Op::Neg) return builder_.CreateNeg(a);
  if (is_unsigned(expr.type)) return a;
  return builder_.CreateIntrinsic(llvm::Intrinsic::abs, {a->getType()}, {a, builder_.getFalse()});
}

llvm::Value* Emitter::binary(Op op, Type type, llvm::Value* a, llvm::Value* b) {
  const bool real = is_real(type);
  switch (op) {
    case Op::Add:
      return real ? builder_.CreateFAdd(a, b) : builder_.CreateAdd(a, b);
    case Op::Sub:
      return real ? builder_.CreateFSub(a, b) : builder_.CreateSub(a, b);
    case Op::Mul:
      return real ? builder_.CreateFMul(a, b) : builder_.CreateMul(a, b);
    case Op::Div:
      return builder_.CreateFDiv(a, b);
    case Op::Max:
      return extreme(type, a, b, true);
    case Op::Min:
      return extreme(type, a, b, false);
    case Op::And:
      return builder_.CreateAnd(a, b);
    case Op::Or:
      return builder_.CreateOr(a, b);
    default:
      return builder_.CreateXor(a, b);
  }
}

/// A comparison with NaN is false and gives `a`, so only a NaN in `b` needs care.
llvm::Value* Emitter::extreme(Type type, llvm::Value* a, llvm::Value* b, bool largest) {
  llvm::Value* better = compare(largest ? Op::Gt : Op::Lt, type, b, a);
  llvm::Value* result = builder_.CreateSelect(better, b, a);
  return is_real(type) ? builder_.CreateSelect(builder_.CreateFCmpUNO(b, b), b, result) : result;
}

llvm::Value* Emitter::compare(Op op, Type type, llvm::Value* a, llvm::Value* b) {
  return builder_.CreateCmp(predicate(op, type), a, b);
}

/// Floating point goes to small integers by way of 32 bits, as compilers of C++ do it.
llvm::Value* Emitter::cast(Type from, Type to, llvm::Value* a) {
  llvm::Type* result = like(a, element(to));
  if (from == to) return a;
  if (to == Type::Bool) {
    llvm::Value* zero = llvm::Constant::getNullValue(a->getType());
    return is_real(from) ? builder_.CreateFCmpUNE(a, zero) : builder_.CreateICmpNE(a, zero);
  }
  if (is_real(from) && is_real(to)) return builder_.CreateFPCast(a, result);
  if (is_real(from)) {
    llvm::Type* exact = to == Type::I64 ? result : like(a, builder_.getInt32Ty());
    return builder_.CreateTrunc(builder_.CreateFPToSI(a, exact), result);
  }
  if (is_real(to))
    return is_unsigned(from) ? builder_.CreateUIToFP(a, result) : builder_.CreateSIToFP(a, result);
  return builder_.CreateIntCast(a, result, !is_unsigned(from));
}

llvm::Value* Emitter::widened(llvm::Value* value) {
  if (width_ == 1 || value->getType()->isVectorTy()) return value;
  return builder_.CreateVectorSplat(static_cast<unsigned>(width_), value);
}

llvm::Value* Emitter::identity(const loops::Expr& fold) {
  llvm::Type* type = wide(element(fold.type));
  if (fold.op == Op::ReduceSum) return llvm::Constant::getNullValue(type);
  const bool largest = fold.op == Op::ReduceMax, product = fold.op == Op::ReduceProduct;
  if (is_real(fold.type)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return llvm::ConstantFP::get(type, product ? 1 : largest ? -infinity : infinity);
  }
  const unsigned bits = element(fold.type)->getIntegerBitWidth();
  if (product) return llvm::ConstantInt::get(type, 1);
  if (is_unsigned(fold.type))
    return llvm::ConstantInt::get(type,
                                  largest ? llvm::APInt::getMinValue(bits) : llvm::APInt::getMaxValue(bits));
  return llvm::ConstantInt::get(
      type, largest ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getSignedMaxValue(bits));
}

}  // namespace tandem::native
