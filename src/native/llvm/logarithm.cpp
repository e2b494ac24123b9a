#include "native/llvm/math.h"

#include <limits>

// Coefficients are minimax fits: scripts/fit_math.py prints them.

namespace tandem::native {
namespace {

/// (log(1 + f) - f + f^2 / 2) / f^3.
constexpr double cubic_f32[] = {0.33333332869119553,  -0.24999966138606308, 0.20000035427021337,
                                -0.16669429527128163, 0.1428695055737938,   -0.12425176175052347,
                                0.11012034188754359,  -0.10793528472291004, 0.10743201893370727,
                                -0.061521758302128395};
/// (2 atanh(s) - 2 s) / s^3 as a polynomial of s^2.
constexpr double atanh_f64[] = {0.6666666666666734,  0.39999999999416874, 0.28571428741973026,
                                0.22222198610708382, 0.18183562563702943, 0.15314091983678835,
                                0.14795564187410906};

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
  llvm::Value* lost_of_m = builder.CreateFMul(lost, lanes.power_of_two(builder.CreateNeg(split.exponent)));
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
