#include "native/llvm/math.h"

#include <limits>

// scripts/fit_math.py prints the coefficients.

namespace tandem::native {
namespace {

/// (log(1 + f) - f + f^2 / 2) / f^3.
constexpr double cubic_f32[] = {0.33333332863491483,  -0.24999966037023832, 0.20000035793458967,
                                -0.16669434589720916, 0.14286944947713112,  -0.12425092810118579,
                                0.11012036305078621,  -0.10794028152199094, 0.10743460524244358,
                                -0.061515633201950741};
/// (2 atanh(s) - 2 s) / s^3 as a polynomial of s^2.
constexpr double atanh_f64[] = {0.6666666666666734,  0.39999999999414682, 0.28571428742386523,
                                0.22222198573295845, 0.1818356432034991,  0.15314050700629514,
                                0.1479594819628893};

/// Parts of ln 2, the first with zeros at its end, so that its products with exponents are exact.
constexpr double ln2_high_f32 = 0x1.62e4p-1, ln2_low_f32 = 0x1.7f7d1cf79abcap-20;
constexpr double ln2_high_f64 = 0x1.62e42fefa38p-1, ln2_low_f64 = 0x1.ef35793c7673p-45;

/// x = 2^exponent * m with m between the root of 1/2 and the root of 2.
struct Split {
  llvm::Value *exponent, *m;
};

Split split_at_root_of_half(Builder& builder, const Lanes& lanes, llvm::Value* x) {
  const int64_t root_of_half = lanes.is_double() ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
  llvm::Value* offset = builder.CreateSub(lanes.bits(x), lanes.integer(root_of_half));
  llvm::Value* exponent = builder.CreateAShr(offset, lanes.integer(lanes.mantissa_bits()));
  llvm::Value* shift = builder.CreateShl(exponent, lanes.integer(lanes.mantissa_bits()));
  return {exponent, lanes.from_bits(builder.CreateSub(lanes.bits(x), shift))};
}

/// log(1 + f) - f.
llvm::Value* beyond_linear(Builder& builder, const Lanes& lanes, llvm::Value* f) {
  llvm::Value* square = builder.CreateFMul(f, f);
  if (!lanes.is_double()) {
    llvm::Value* cube = builder.CreateFMul(square, f);
    return lanes.fma(square, lanes.number(-0.5), builder.CreateFMul(cube, lanes.polynomial(f, cubic_f32)));
  }
  llvm::Value* s = builder.CreateFDiv(f, builder.CreateFAdd(f, lanes.number(2)));
  llvm::Value* z = builder.CreateFMul(s, s);
  llvm::Value* half = builder.CreateFMul(square, lanes.number(0.5));
  llvm::Value* rest = lanes.fma(z, lanes.polynomial(z, atanh_f64), half);
  return builder.CreateFSub(builder.CreateFMul(s, rest), half);
}

/// exponent * ln 2 + f + small, the smallest first.
llvm::Value* sum_of_parts(Builder& builder, const Lanes& lanes, llvm::Value* exponent, llvm::Value* f,
                          llvm::Value* small) {
  llvm::Value* count = builder.CreateSIToFP(exponent, lanes.type());
  const double high = lanes.is_double() ? ln2_high_f64 : ln2_high_f32;
  const double low = lanes.is_double() ? ln2_low_f64 : ln2_low_f32;
  llvm::Value* sum = builder.CreateFAdd(f, lanes.fma(count, lanes.number(low), small));
  return lanes.fma(count, lanes.number(high), sum);
}

/// `result` with the ends put right: -Inf at `pole`, NaN below it and of NaN, Inf of Inf.
llvm::Value* with_ends(Builder& builder, const Lanes& lanes, llvm::Value* x, llvm::Value* pole,
                       llvm::Value* result) {
  const double infinity = std::numeric_limits<double>::infinity();
  llvm::Value* inside = builder.CreateFCmpOLT(x, lanes.number(infinity));
  result = builder.CreateSelect(inside, result, x);
  result = builder.CreateSelect(builder.CreateFCmpOEQ(x, pole), lanes.number(-infinity), result);
  llvm::Value* nan = llvm::ConstantFP::getNaN(lanes.type());
  return builder.CreateSelect(builder.CreateFCmpOLT(x, pole), nan, result);
}

}  // namespace

llvm::Value* emit_log(Builder& builder, const Lanes& lanes, llvm::Value* x) {
  const double least_normal = lanes.is_double() ? 0x1p-1022 : 0x1p-126;
  const int bits = lanes.mantissa_bits();
  llvm::Value* is_denormal = builder.CreateFCmpOLT(x, lanes.number(least_normal));
  llvm::Value* grown = builder.CreateFMul(x, lanes.number(lanes.is_double() ? 0x1p52 : 0x1p23));
  const Split split = split_at_root_of_half(builder, lanes, builder.CreateSelect(is_denormal, grown, x));
  llvm::Value* lowered = builder.CreateSub(split.exponent, lanes.integer(bits));
  llvm::Value* exponent = builder.CreateSelect(is_denormal, lowered, split.exponent);
  llvm::Value* f = builder.CreateFSub(split.m, lanes.number(1));
  llvm::Value* result = sum_of_parts(builder, lanes, exponent, f, beyond_linear(builder, lanes, f));
  return with_ends(builder, lanes, x, lanes.number(0), result);
}

// What 1 + x lost is brought back as a part of f, whose own rounding is brought back in turn.
llvm::Value* emit_log1p(Builder& builder, const Lanes& lanes, llvm::Value* x) {
  llvm::Value* one = lanes.number(1);
  llvm::Value* sum = builder.CreateFAdd(x, one);
  llvm::Value* x_is_large = builder.CreateFCmpOGT(x, one);
  llvm::Value* larger = builder.CreateSelect(x_is_large, x, one);
  llvm::Value* smaller = builder.CreateSelect(x_is_large, one, x);
  llvm::Value* lost = builder.CreateFSub(smaller, builder.CreateFSub(sum, larger));
  const Split split = split_at_root_of_half(builder, lanes, sum);
  // Beyond this size nothing is lost that could be seen, and the scale would be no normal number.
  llvm::Value* bounded =
      builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, split.exponent, lanes.integer(64));
  llvm::Value* lost_of_m = builder.CreateFMul(lost, lanes.power_of_two(builder.CreateNeg(bounded)));
  llvm::Value* m_less_one = builder.CreateFSub(split.m, one);
  llvm::Value* f = builder.CreateFAdd(m_less_one, lost_of_m);
  llvm::Value* lost_of_f = builder.CreateFSub(lost_of_m, builder.CreateFSub(f, m_less_one));
  llvm::Value* small =
      builder.CreateFAdd(beyond_linear(builder, lanes, f), builder.CreateFDiv(lost_of_f, split.m));
  llvm::Value* result = sum_of_parts(builder, lanes, split.exponent, f, small);
  llvm::Value* is_zero = builder.CreateFCmpOEQ(x, lanes.number(0));
  result = builder.CreateSelect(is_zero, x, result);
  return with_ends(builder, lanes, x, lanes.number(-1), result);
}

}  // namespace tandem::native
