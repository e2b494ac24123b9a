/// Between which bounds a value lies that is computed as a kernel says, whatever the order of sums, and
/// products fed to sums with or without rounding between; each operator adds the error that it may make.
#pragma once

#include "loops/scalar.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem::loops {

/// Finite bounds, or equal infinite ones, or NaN for both; integers are exact. What may be of either kind, or
/// one of several integers, is not known.
struct ValueRange {
  long double low = 0, high = 0;
  bool known = true;

  static ValueRange unknown() { return {0, 0, false}; }
  static ValueRange nan() { return {NAN, NAN}; }
  bool is_nan() const { return known && low != low; }
  bool is_infinite() const { return known && std::isinf(low); }
  bool is_exact() const { return known && low == high; }
  bool holds(long double value) const { return low <= value && value <= high; }
  long double size() const { return std::max(std::fabs(low), std::fabs(high)); }
};

struct Precision {
  long double unit;      ///< half of the distance of 1 to the next number
  long double smallest;  ///< number above 0
  long double normal;    ///< smallest number of full precision
  long double largest;
};

template <class T>
constexpr Precision precision = {std::numeric_limits<T>::epsilon() / 2.0L,
                                 std::numeric_limits<T>::denorm_min(), std::numeric_limits<T>::min(),
                                 std::numeric_limits<T>::max()};

inline const Precision& precision_of(Type type) {
  return type == Type::F32 ? precision<float> : precision<double>;
}

inline bool fits(long double value, Type type) {
  return type == Type::F32 ? static_cast<float>(value) == value : static_cast<double>(value) == value;
}

inline ValueRange exactly(Scalar value, Type type) {
  long double number = static_cast<long double>(value.integer);
  if (type == Type::F32) number = value.single;
  if (type == Type::F64) number = value.real;
  return {number, number};
}

/// Unknown where the bounds are of different kinds.
inline ValueRange settled(long double low, long double high) {
  if (low != low && high != high) return ValueRange::nan();
  if (low != low || high != high) return ValueRange::unknown();
  if (low != high && (std::isinf(low) || std::isinf(high))) return ValueRange::unknown();
  return {low, high};
}

/// With an error of so many parts of its size and so much more; infinite beyond the largest number.
inline ValueRange widened(ValueRange range, Type type, long double relative, long double absolute) {
  if (!range.known || range.is_nan() || range.is_infinite()) return range;
  const Precision& p = precision_of(type);
  // The bounds themselves are computed with an error that is small against `relative`.
  relative *= 1.01L;
  range.low -= std::fabs(range.low) * relative + absolute;
  range.high += std::fabs(range.high) * relative + absolute;
  if (range.low > p.largest * (1 + p.unit)) return {INFINITY, INFINITY};
  if (range.high < -p.largest * (1 + p.unit)) return {-INFINITY, -INFINITY};
  if (range.size() > p.largest) return ValueRange::unknown();
  return range;
}

/// To the nearest number of its type.
inline ValueRange rounded(ValueRange range, Type type) {
  if (range.is_exact() && fits(range.low, type)) return range;
  const Precision& p = precision_of(type);
  return widened(range, type, p.unit, p.smallest);
}

/// Of the values at the bounds of operands.
template <class Function>
ValueRange over_corners(const ValueRange& a, const ValueRange& b, Function function) {
  const long double corners[] = {function(a.low, b.low), function(a.low, b.high), function(a.high, b.low),
                                 function(a.high, b.high)};
  const auto nans = std::ranges::count_if(corners, [](long double x) { return x != x; });
  if (nans > 0) return nans == 4 ? ValueRange::nan() : ValueRange::unknown();
  return settled(*std::ranges::min_element(corners), *std::ranges::max_element(corners));
}

// The product may be fed to a sum before it is rounded: beyond the largest number it need not be infinite,
// and it is exact only where it is so before rounding.
inline ValueRange product(const ValueRange& a, const ValueRange& b, Type type) {
  const ValueRange range = over_corners(a, b, std::multiplies<long double>());
  if (range.is_infinite() || (range.is_exact() && (type == Type::F32 ? fits(range.low, type) : !range.low)))
    return range;
  const ValueRange wider = widened(range, type, precision_of(type).unit, precision_of(type).smallest);
  return wider.is_infinite() ? ValueRange::unknown() : wider;
}

// Which of both zeros divides is not told here.
inline ValueRange quotient(const ValueRange& a, const ValueRange& b, Type type) {
  if (b.holds(0)) return ValueRange::unknown();
  return rounded(over_corners(a, b, std::divides<long double>()), type);
}

/// A function that grows with its operand, or falls nowhere, with the values that it has at most.
struct Growing {
  Op op;
  long double (*function)(long double);
  bool is_exact;                 ///< else it may be some units of the last place off
  long double from = -INFINITY;  ///< where it begins to be a number
  long double least = -INFINITY, most = INFINITY;
};

inline constexpr Growing growing_functions[] = {
    {Op::Floor, [](long double x) { return std::floor(x); }, true},
    {Op::Ceil, [](long double x) { return std::ceil(x); }, true},
    {Op::Round, [](long double x) { return std::nearbyint(x); }, true},
    {Op::Trunc, [](long double x) { return std::trunc(x); }, true},
    {Op::Sqrt, [](long double x) { return std::sqrt(x); }, true, 0},
    {Op::Exp, [](long double x) { return std::exp(x); }, false, -INFINITY, 0},
    {Op::Expm1, [](long double x) { return std::expm1(x); }, false, -INFINITY, -1},
    {Op::Log, [](long double x) { return std::log(x); }, false, 0},
    {Op::Log1p, [](long double x) { return std::log1p(x); }, false, -1},
    {Op::Tanh, [](long double x) { return std::tanh(x); }, false, -INFINITY, -1, 1},
    {Op::Erf, [](long double x) { return std::erf(x); }, false, -INFINITY, -1, 1},
    {Op::Sigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }, false, -INFINITY, 0, 1},
};

/// How far functions may be off, in units of the last place.
constexpr long double function_error = 4;

inline ValueRange of_function(ValueRange range, Type type) {
  const Precision& p = precision_of(type);
  return widened(range, type, 2 * function_error * p.unit, p.normal);
}

inline ValueRange grown(const Growing& growing, const ValueRange& a, Type type) {
  if (a.high < growing.from) return ValueRange::nan();
  if (a.low < growing.from) return ValueRange::unknown();
  const ValueRange range = settled(growing.function(a.low), growing.function(a.high));
  if (growing.is_exact) return rounded(range, type);
  ValueRange wider = of_function(range, type);
  if (!wider.known || wider.is_nan()) return wider;
  return {std::max(wider.low, growing.least), std::min(wider.high, growing.most)};
}

inline ValueRange wave(Op op, const ValueRange& a, Type type) {
  if (a.is_infinite()) return ValueRange::nan();
  const long double middle = (a.low + a.high) / 2, around = (a.high - a.low) / 2;
  const long double value = op == Op::Sin ? std::sin(middle) : std::cos(middle);
  const ValueRange wider = of_function({value - around, value + around}, type);
  return {std::max(wider.low, -1.0L), std::min(wider.high, 1.0L)};
}

inline ValueRange magnitude(const ValueRange& a) {
  if (a.low >= 0) return a;
  if (a.high <= 0) return {-a.high, -a.low};
  return {0, a.size()};
}

inline ValueRange range_of_float(Op op, Type type, const ValueRange& a, const ValueRange& b) {
  if (!a.known || !b.known) return ValueRange::unknown();
  if (a.is_nan() || b.is_nan()) return ValueRange::nan();
  for (const Growing& growing : growing_functions)
    if (growing.op == op) return grown(growing, a, type);
  switch (op) {
    case Op::Neg:
      return {-a.high, -a.low};
    case Op::Abs:
      return magnitude(a);
    case Op::Sin:
    case Op::Cos:
      return wave(op, a, type);
    case Op::Add:
      return rounded(settled(a.low + b.low, a.high + b.high), type);
    case Op::Sub:
      return rounded(settled(a.low - b.high, a.high - b.low), type);
    case Op::Mul:
      return product(a, b, type);
    case Op::Div:
      return quotient(a, b, type);
    case Op::Max:
      return settled(std::max(a.low, b.low), std::max(a.high, b.high));
    case Op::Min:
      return settled(std::min(a.low, b.low), std::min(a.high, b.high));
    default:
      return ValueRange::unknown();
  }
}

inline ValueRange truth(bool certainly, bool certainly_not) {
  if (!certainly && !certainly_not) return ValueRange::unknown();
  return {static_cast<long double>(certainly), static_cast<long double>(certainly)};
}

inline ValueRange compared(Op op, const ValueRange& a, const ValueRange& b) {
  if (!a.known || !b.known) return ValueRange::unknown();
  if (a.is_nan() || b.is_nan()) return truth(op == Op::Ne, op != Op::Ne);
  const bool same = a.is_exact() && b.is_exact() && a.low == b.low;
  const bool apart = a.high < b.low || b.high < a.low;
  switch (op) {
    case Op::Eq:
      return truth(same, apart);
    case Op::Ne:
      return truth(apart, same);
    case Op::Lt:
      return truth(a.high < b.low, a.low >= b.high);
    case Op::Le:
      return truth(a.high <= b.low, a.low > b.high);
    case Op::Gt:
      return truth(a.low > b.high, a.high <= b.low);
    default:
      return truth(a.low >= b.high, a.high < b.low);
  }
}

inline Scalar integer_of(const ValueRange& range) { return {.integer = static_cast<int64_t>(range.low)}; }

/// Of integers and Bool, which the interpreter computes exactly.
inline ValueRange range_of_integer(Op op, Type from, Type to, const ValueRange& a, const ValueRange& b) {
  if (!a.known || !b.known) return ValueRange::unknown();
  return exactly(compute_of(op, from, to)(integer_of(a), integer_of(b), {}), to);
}

/// C++ says what becomes of a number only where the integer can hold it.
inline ValueRange whole(const ValueRange& a, Type to) {
  const long double value = std::trunc(a.low);
  if (std::trunc(a.high) != value || std::fabs(value) >= 0x1p63L) return ValueRange::unknown();
  const Scalar integer = {.integer = static_cast<int64_t>(value)};
  const bool held = compute_of(Op::Cast, Type::I64, to)(integer, {}, {}).integer == integer.integer;
  return held ? ValueRange{value, value} : ValueRange::unknown();
}

inline ValueRange converted_range(Type from, Type to, const ValueRange& a) {
  if (!a.known) return a;
  if (to == Type::Bool) return compared(Op::Ne, a, {0, 0});
  if (kind_of(to) == Floats) return a.is_nan() ? a : rounded(a, to);
  return kind_of(from) == Floats ? whole(a, to) : range_of_integer(Op::Cast, from, to, a, {});
}

inline ValueRange selected_range(Type type, const ValueRange& a, const ValueRange& b, const ValueRange& c) {
  if (a.known) return a.low != 0 ? b : c;
  const bool both = b.known && c.known && std::isfinite(b.low) && std::isfinite(c.low);
  if (!both || kind_of(type) != Floats) return ValueRange::unknown();
  return {std::min(b.low, c.low), std::max(b.high, c.high)};
}

}  // namespace tandem::loops
