#include "native/llvm/math.h"

#include <llvm/IR/Module.h>

// scripts/fit_math.py prints the coefficients.

namespace tandem::native {
namespace {

/// (sin r - r) / r^3 and (cos r - 1 + r^2 / 2) / r^4 as polynomials of r^2, for r up to pi / 4.
constexpr double sin_f32[] = {-0.16666666641627093, 0.0083333293859569214, -0.00019839334857873215,
                              2.7183117019756209e-06};
constexpr double sin_f64[] = {-0.16666666666666666,   0.0083333333333333228,   -0.00019841269841255137,
                              2.7557319214227124e-06, -2.5052104921346326e-08, 1.6058367894989489e-10,
                              -7.5787618566836324e-13};
constexpr double cos_f32[] = {0.041666666622828419, -0.001388888375344087, 2.4799520016830663e-05,
                              -2.7210238435714348e-07};
constexpr double cos_f64[] = {0.041666666666666664,    -0.0013888888888888874, 2.480158730157154e-05,
                              -2.7557319215394502e-07, 2.0876754370369356e-09, -1.1470293744799764e-11,
                              4.7381306586416428e-14};

/// 2 / pi times 2^200, in pieces.
constexpr double two_by_pi[] = {
    0x1.45f306dc9c882p+199, 0x1.4a7f09d5f47d4p+146, 0x1.a6ee06db14accp+93,  0x1.3c439041fe516p+40,
    0x1.d5ef5de2b0db8p-15,  0x1.2371d2126e970p-67,  0x1.924bba8274600p-126, 0x1.21cfe1deb1cb1p-172,
    0x1.4d39f74411af8p-227, 0x1.4baed1213a671p-278, 0x1.8135a2fbf209cp-331, 0x1.91d639835339fp-384,
    0x1.272117e2ef7e4p-438, 0x1.41d8ffc4bffeep-491, 0x1.02cc07f79788cp-543, 0x1.6b414da3eda6cp-597,
    0x1.fb3c9f2c26dd2p-650, 0x1.d18fd9a797fa8p-702, 0x1.6ba93dd63f5f2p-755, 0x1.f17b3d0739f78p-808,
    0x1.4a525d4d7f6bfp-861, 0x1.88fc6ae842b00p-915};
constexpr double scale_of_pieces = 0x1p200;
constexpr int64_t pieces_for_f32 = 5, pieces_for_f64 = std::size(two_by_pi);

constexpr double half_pi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};

/// Beyond it half_pi has too few digits.
constexpr double large = 0x1p30;

/// x = quadrant * pi / 2 + rest, the rest at most a quarter of pi in size.
struct Turned {
  llvm::Value* quadrant;  ///< an integer, of which the last two bits count
  llvm::Value* rest;
  llvm::Value* rest_error;  ///< what rounding took from it
};

/// The nearest integer has to have less than 52 bits.
Turned turned_by_integer(Builder& builder, const Lanes& lanes, llvm::Value* shifted) {
  llvm::Value* shift = lanes.number(0x1.8p52);
  return {lanes.bits(shifted), builder.CreateFSub(shifted, shift), nullptr};
}

Turned turned_little(Builder& builder, const Lanes& lanes, llvm::Value* x) {
  llvm::Value* shifted = lanes.fma(x, lanes.number(0x1.45f306dc9c883p-1), lanes.number(0x1.8p52));
  const Turned whole = turned_by_integer(builder, lanes, shifted);
  llvm::Value* count = builder.CreateFNeg(whole.rest);
  llvm::Value* first = lanes.fma(count, lanes.number(half_pi[0]), x);
  llvm::Value* second = lanes.fma(count, lanes.number(half_pi[1]), first);
  llvm::Value* lost = lanes.fma(count, lanes.number(half_pi[1]), builder.CreateFSub(first, second));
  llvm::Value* third = lanes.fma(count, lanes.number(half_pi[2]), lost);
  llvm::Value* rest = builder.CreateFAdd(second, third);
  return {whole.quadrant, rest, builder.CreateFAdd(builder.CreateFSub(second, rest), third)};
}

/// Without whole turns, of which four quadrants are one.
llvm::Value* less_turns(Builder& builder, const Lanes& lanes, llvm::Value* quadrants) {
  llvm::Value* turns = lanes.nearest(builder.CreateFMul(quadrants, lanes.number(0.25)));
  return lanes.fma(turns, lanes.number(-4), quadrants);
}

llvm::Value* piece_at(Builder& builder, const Lanes& lanes, llvm::Value* place) {
  llvm::Module& module = *builder.GetInsertBlock()->getModule();
  const char* name = "two_by_pi";
  llvm::GlobalVariable* table = module.getNamedGlobal(name);
  if (!table) {
    llvm::Constant* pieces = llvm::ConstantDataArray::get(module.getContext(), llvm::ArrayRef(two_by_pi));
    table = new llvm::GlobalVariable(module, pieces->getType(), true, llvm::GlobalValue::InternalLinkage,
                                     pieces, name);
  }
  llvm::Value* from = builder.CreateGEP(builder.getDoubleTy(), table, place);
  llvm::Value* piece = builder.CreateLoad(builder.getDoubleTy(), from);
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(lanes.type());
  return vector ? builder.CreateVectorSplat(vector->getNumElements(), piece) : piece;
}

/// The product with 2 / pi, piece by piece, of which whole turns are taken at once.
Turned turned_much(Builder& builder, const Lanes& lanes, llvm::Value* x, int64_t pieces) {
  x = builder.CreateFMul(x, lanes.number(1 / scale_of_pieces));
  llvm::Value* zero = lanes.number(0);
  const Range range = {builder.getInt64(0), builder.getInt64(static_cast<uint64_t>(pieces)),
                       builder.getInt64(1)};
  const Values sums =
      emit_loop(builder, range, {zero, zero, zero}, [&](llvm::Value* at, const Values& before) {
        llvm::Value* piece = piece_at(builder, lanes, at);
        llvm::Value* product = builder.CreateFMul(x, piece);
        llvm::Value* lost = lanes.fma(x, piece, builder.CreateFNeg(product));
        const Sum first = exact_sum(builder, before[0], less_turns(builder, lanes, product));
        const Sum second = exact_sum(builder, first.sum, less_turns(builder, lanes, lost));
        const Sum errors = exact_sum(builder, before[1], builder.CreateFAdd(first.error, second.error));
        return Values{less_turns(builder, lanes, second.sum), errors.sum,
                      builder.CreateFAdd(before[2], errors.error)};
      });
  const Turned whole = turned_by_integer(builder, lanes, builder.CreateFAdd(sums[0], lanes.number(0x1.8p52)));
  const Sum part = exact_sum(builder, builder.CreateFSub(sums[0], whole.rest), sums[1]);
  llvm::Value* error = builder.CreateFAdd(part.error, sums[2]);
  llvm::Value* rest = builder.CreateFMul(part.sum, lanes.number(half_pi[0]));
  llvm::Value* lost = lanes.fma(part.sum, lanes.number(half_pi[0]), builder.CreateFNeg(rest));
  lost = lanes.fma(part.sum, lanes.number(half_pi[1]), lost);
  return {whole.quadrant, rest, lanes.fma(error, lanes.number(half_pi[0]), lost)};
}

llvm::Value* any_of(Builder& builder, llvm::Value* lanes) {
  return lanes->getType()->isVectorTy() ? builder.CreateOrReduce(lanes) : lanes;
}

llvm::Value* either(Builder& builder, llvm::BasicBlock* first, llvm::Value* a, llvm::BasicBlock* second,
                    llvm::Value* b) {
  llvm::PHINode* phi = builder.CreatePHI(a->getType(), 2);
  phi->addIncoming(a, first);
  phi->addIncoming(b, second);
  return phi;
}

/// Large ones are rare, and skipped where there is none.
Turned turned(Builder& builder, const Lanes& lanes, llvm::Value* x, int64_t pieces) {
  const Turned little = turned_little(builder, lanes, x);
  llvm::Value* is_large = builder.CreateFCmpOGT(lanes.abs(x), lanes.number(large));
  llvm::BasicBlock* before = builder.GetInsertBlock();
  llvm::Function* function = before->getParent();
  llvm::BasicBlock* begin = llvm::BasicBlock::Create(builder.getContext(), "large", function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(builder.getContext(), "turned", function);
  builder.CreateCondBr(any_of(builder, is_large), begin, after);

  builder.SetInsertPoint(begin);
  const Turned much = turned_much(builder, lanes, x, pieces);
  llvm::Value* quadrant = builder.CreateSelect(is_large, much.quadrant, little.quadrant);
  llvm::Value* rest = builder.CreateSelect(is_large, much.rest, little.rest);
  llvm::Value* rest_error = builder.CreateSelect(is_large, much.rest_error, little.rest_error);
  llvm::BasicBlock* end = builder.GetInsertBlock();
  builder.CreateBr(after);

  builder.SetInsertPoint(after);
  return {either(builder, before, little.quadrant, end, quadrant),
          either(builder, before, little.rest, end, rest),
          either(builder, before, little.rest_error, end, rest_error)};
}

/// Single precision turns in doubles: what is left of it then is exact enough.
Turned turned_in_double(Builder& builder, const Lanes& lanes, llvm::Value* x) {
  if (lanes.is_double()) return turned(builder, lanes, x, pieces_for_f64);
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(lanes.type());
  llvm::Type* element = builder.getDoubleTy();
  llvm::Type* type = vector ? llvm::FixedVectorType::get(element, vector->getNumElements()) : element;
  const Lanes doubles(builder, type);
  const Turned result = turned(builder, doubles, builder.CreateFPExt(x, type), pieces_for_f32);
  llvm::Value* rest = builder.CreateFPTrunc(result.rest, lanes.type());
  llvm::Value* error = builder.CreateFSub(result.rest, builder.CreateFPExt(rest, type));
  return {builder.CreateTrunc(result.quadrant, lanes.integer_type()), rest,
          builder.CreateFPTrunc(error, lanes.type())};
}

/// The sine of what is so many quadrants further.
llvm::Value* wave(Builder& builder, const Lanes& lanes, llvm::Value* x, int64_t quadrants) {
  const Turned turned = turned_in_double(builder, lanes, x);
  const bool real64 = lanes.is_double();
  const auto of_sin = real64 ? std::span<const double>(sin_f64) : std::span<const double>(sin_f32);
  const auto of_cos = real64 ? std::span<const double>(cos_f64) : std::span<const double>(cos_f32);
  llvm::Value *r = turned.rest, *error = turned.rest_error, *square = builder.CreateFMul(r, r);

  llvm::Value* cube = builder.CreateFMul(square, r);
  llvm::Value* sine = builder.CreateFAdd(r, lanes.fma(cube, lanes.polynomial(square, of_sin), error));

  llvm::Value* half = builder.CreateFMul(square, lanes.number(0.5));
  llvm::Value* below_one = builder.CreateFSub(lanes.number(1), half);
  llvm::Value* lost = builder.CreateFSub(builder.CreateFSub(lanes.number(1), below_one), half);
  lost = lanes.fma(r, builder.CreateFNeg(error), lost);
  llvm::Value* fourth = builder.CreateFMul(square, square);
  llvm::Value* cosine =
      builder.CreateFAdd(below_one, lanes.fma(fourth, lanes.polynomial(square, of_cos), lost));

  llvm::Value* quadrant = builder.CreateAdd(turned.quadrant, lanes.integer(quadrants));
  llvm::Value* is_odd = builder.CreateICmpNE(builder.CreateAnd(quadrant, lanes.integer(1)), lanes.integer(0));
  llvm::Value* result = builder.CreateSelect(is_odd, cosine, sine);
  llvm::Value* sign =
      builder.CreateShl(builder.CreateAnd(quadrant, lanes.integer(2)), lanes.integer(real64 ? 62 : 30));
  return lanes.from_bits(builder.CreateXor(lanes.bits(result), sign));
}

}  // namespace

llvm::Value* emit_sin(Builder& builder, const Lanes& lanes, llvm::Value* x) {
  llvm::Value* tiny = lanes.number(lanes.is_double() ? 0x1p-27 : 0x1p-13);
  llvm::Value* is_tiny = builder.CreateFCmpOLT(lanes.abs(x), tiny);
  return builder.CreateSelect(is_tiny, x, wave(builder, lanes, x, 0));
}

llvm::Value* emit_cos(Builder& builder, const Lanes& lanes, llvm::Value* x) {
  return wave(builder, lanes, x, 1);
}

}  // namespace tandem::native
