#include "native/llvm/exponential.h"

#include "native/llvm/math.h"

// scripts/fit_math.py prints the coefficients.

namespace tandem::native {
namespace {

constexpr double tail_f32[] = {0.49999993451795116, 0.16666520689900002, 0.041668387345184396,
                               0.0083687098071283054, 0.0013814613940422832};
constexpr double tail_f64[] = {0.5,
                               0.16666666666666682,
                               0.041666666666666095,
                               0.0083333333333170476,
                               0.0013888888889115431,
                               0.00019841269896350833,
                               2.4801586926886048e-05,
                               2.7557234895640567e-06,
                               2.7557581721549906e-07,
                               2.5112024842728512e-08,
                               2.0826643301007994e-09};

constexpr double one_by_ln2 = 1.4426950408889634;

/// Parts of ln 2, the first with zeros at its end, so that its products with exponents are exact.
struct Ln2 {
  double high, low;
};
constexpr Ln2 ln2_f32 = {0x1.62e4p-1, 0x1.7f7d1cf79abcap-20};
constexpr Ln2 ln2_f64 = {0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45};

/// Where the result overflows, and where it is less than half of the least number.
struct Ends {
  double low, high;
};
constexpr Ends ends_f32 = {-104, 89};
constexpr Ends ends_f64 = {-746, 710};

}  // namespace

Reduced reduce_by_ln2(Builder& builder, const Lanes& lanes, llvm::Value* x) {
  const Ln2 ln2 = lanes.is_double() ? ln2_f64 : ln2_f32;
  // The sum has the nearest integer in its last bits, whatever x is; a conversion of NaN would not be
  // defined.
  llvm::Value* shift = lanes.number(lanes.is_double() ? 0x1.8p52 : 0x1.8p23);
  llvm::Value* shifted = lanes.fma(x, lanes.number(one_by_ln2), shift);
  llvm::Value* count = builder.CreateFSub(shifted, shift);
  llvm::Value* exponent = builder.CreateSub(lanes.bits(shifted), lanes.bits(shift));
  llvm::Value* first = lanes.fma(count, lanes.number(-ln2.high), x);
  llvm::Value* rest = lanes.fma(count, lanes.number(-ln2.low), first);
  llvm::Value* lost = lanes.fma(count, lanes.number(-ln2.low), builder.CreateFSub(first, rest));
  return {exponent, count, rest, lost};
}

llvm::Value* exponential_tail(Builder& builder, const Lanes& lanes, llvm::Value* rest) {
  llvm::Value* square = builder.CreateFMul(rest, rest);
  const auto tail = lanes.is_double() ? std::span<const double>(tail_f64) : std::span<const double>(tail_f32);
  return builder.CreateFMul(square, lanes.polynomial(rest, tail));
}

llvm::Value* plain_exponential(Builder& builder, const Lanes& lanes, llvm::Value* x) {
  const Reduced reduced = reduce_by_ln2(builder, lanes, x);
  llvm::Value* tail = exponential_tail(builder, lanes, reduced.rest);
  llvm::Value* near_one = builder.CreateFAdd(lanes.number(1), builder.CreateFAdd(reduced.rest, tail));
  if (llvm::Value* scaled = lanes.scaled_at_once(near_one, reduced.power)) return scaled;
  return builder.CreateFMul(near_one, lanes.power_of_two(reduced.exponent));
}

// The power of two is applied in two halves, each a normal number, so that results are rounded once, to
// infinities and to denormals.
llvm::Value* emit_exp(Builder& builder, const Lanes& lanes, llvm::Value* x) {
  const Ends ends = lanes.is_double() ? ends_f64 : ends_f32;
  const Reduced reduced =
      reduce_by_ln2(builder, lanes, lanes.at_least(lanes.at_most(x, ends.high), ends.low));
  llvm::Value* tail = exponential_tail(builder, lanes, reduced.rest);
  llvm::Value* near_one = builder.CreateFAdd(lanes.number(1), builder.CreateFAdd(reduced.rest, tail));
  if (llvm::Value* scaled = lanes.scaled_at_once(near_one, reduced.power)) return scaled;
  llvm::Value* half = builder.CreateAShr(reduced.exponent, lanes.integer(1));
  llvm::Value* other = builder.CreateSub(reduced.exponent, half);
  llvm::Value* scaled = builder.CreateFMul(near_one, lanes.power_of_two(half));
  return builder.CreateFMul(scaled, lanes.power_of_two(other));
}

// s (1 + rest + tail) - 1 = (s rest + (s - 1)) + s tail, at half its size: s itself may overflow.
llvm::Value* emit_expm1(Builder& builder, const Lanes& lanes, llvm::Value* x) {
  const double least = lanes.is_double() ? -40 : -20;
  const double most = lanes.is_double() ? ends_f64.high : ends_f32.high;
  const Reduced reduced = reduce_by_ln2(builder, lanes, lanes.at_least(lanes.at_most(x, most), least));
  llvm::Value* tail = exponential_tail(builder, lanes, reduced.rest);
  tail = builder.CreateFAdd(tail, reduced.rest_error);
  llvm::Value* half_scale = lanes.power_of_two(builder.CreateSub(reduced.exponent, lanes.integer(1)));
  llvm::Value* scale_less_one = builder.CreateFSub(half_scale, lanes.number(0.5));
  llvm::Value* half = lanes.fma(half_scale, tail, lanes.fma(half_scale, reduced.rest, scale_less_one));
  llvm::Value* whole = builder.CreateFAdd(half, half);
  const double tiny = lanes.is_double() ? 0x1p-54 : 0x1p-25;
  return builder.CreateSelect(builder.CreateFCmpOLT(lanes.abs(x), lanes.number(tiny)), x, whole);
}

// e / (1 + e) with e = exp(-|x|) has no overflow on its way; 1 / (1 + e) is the same on the other side.
llvm::Value* emit_sigmoid(Builder& builder, const Lanes& lanes, llvm::Value* x) {
  llvm::Value* small = emit_exp(builder, lanes, builder.CreateFNeg(lanes.abs(x)));
  llvm::Value* above =
      builder.CreateSelect(builder.CreateFCmpOLT(x, lanes.number(0)), small, lanes.number(1));
  return lanes.quotient(above, builder.CreateFAdd(lanes.number(1), small));
}

}  // namespace tandem::native
