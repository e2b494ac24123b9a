#include "loops/scalar.h"

#include <cmath>
#include <functional>
#include <limits>
#include <utility>

namespace tandem::loops {

namespace {

template <class Function>
auto with_type(Type type, Function function) {
  switch (type) {
    case Type::Bool:
      return function(bool());
    case Type::U8:
      return function(uint8_t());
    case Type::I8:
      return function(int8_t());
    case Type::I16:
      return function(int16_t());
    case Type::I32:
      return function(int32_t());
    case Type::I64:
      return function(int64_t());
    case Type::F32:
      return function(float());
    case Type::F64:
      break;
  }
  return function(double());
}

template <class T>
Scalar scalar(T value) {
  if constexpr (std::is_same_v<T, float>) return {.single = value};
  if constexpr (std::is_same_v<T, double>) return {.real = value};
  return {.integer = static_cast<int64_t>(value)};
}

template <class T>
T get(Scalar value) {
  if constexpr (std::is_same_v<T, float>) return value.single;
  if constexpr (std::is_same_v<T, double>) return value.real;
  return static_cast<T>(value.integer);
}

template <class T, auto function>
Scalar unary(Scalar a, Scalar, Scalar) {
  return scalar<T>(function(get<T>(a)));
}

template <class T, auto function>
Scalar binary(Scalar a, Scalar b, Scalar) {
  return scalar<T>(function(get<T>(a), get<T>(b)));
}

template <class T, auto function>
Scalar comparison(Scalar a, Scalar b, Scalar) {
  return scalar<bool>(function(get<T>(a), get<T>(b)));
}

/// Of integers, modulo 2 to the power of their bits: signed ones must not overflow in C++.
template <class T, auto function>
Scalar wrapping(Scalar a, Scalar b, Scalar) {
  return scalar<T>(
      static_cast<T>(function(static_cast<uint64_t>(a.integer), static_cast<uint64_t>(b.integer))));
}

template <class T>
T larger(T a, T b) {
  return a > b || a != a ? a : b;
}

template <class T>
T smaller(T a, T b) {
  return a < b || a != a ? a : b;
}

template <class T>
constexpr std::pair<Op, Compute> for_all[] = {
    {Op::Max, binary<T, larger<T>>},
    {Op::Min, binary<T, smaller<T>>},
    {Op::Eq, comparison<T, std::equal_to<T>{}>},
    {Op::Ne, comparison<T, std::not_equal_to<T>{}>},
    {Op::Lt, comparison<T, std::less<T>{}>},
    {Op::Le, comparison<T, std::less_equal<T>{}>},
    {Op::Gt, comparison<T, std::greater<T>{}>},
    {Op::Ge, comparison<T, std::greater_equal<T>{}>},
};

template <class T>
constexpr std::pair<Op, Compute> for_floats[] = {
    {Op::Neg, unary<T, [](T x) { return -x; }>},
    {Op::Abs, unary<T, [](T x) { return std::fabs(x); }>},
    {Op::Sqrt, unary<T, [](T x) { return std::sqrt(x); }>},
    {Op::Floor, unary<T, [](T x) { return std::floor(x); }>},
    {Op::Ceil, unary<T, [](T x) { return std::ceil(x); }>},
    {Op::Round, unary<T, [](T x) { return std::nearbyint(x); }>},
    {Op::Trunc, unary<T, [](T x) { return std::trunc(x); }>},
    {Op::Exp, unary<T, [](T x) { return std::exp(x); }>},
    {Op::Expm1, unary<T, [](T x) { return std::expm1(x); }>},
    {Op::Log, unary<T, [](T x) { return std::log(x); }>},
    {Op::Log1p, unary<T, [](T x) { return std::log1p(x); }>},
    {Op::Tanh, unary<T, [](T x) { return std::tanh(x); }>},
    {Op::Erf, unary<T, [](T x) { return std::erf(x); }>},
    {Op::Sigmoid, unary<T, [](T x) { return 1 / (1 + std::exp(-x)); }>},
    {Op::Sin, unary<T, [](T x) { return std::sin(x); }>},
    {Op::Cos, unary<T, [](T x) { return std::cos(x); }>},
    {Op::Add, binary<T, [](T a, T b) { return a + b; }>},
    {Op::Sub, binary<T, [](T a, T b) { return a - b; }>},
    {Op::Mul, binary<T, [](T a, T b) { return a * b; }>},
    {Op::Div, binary<T, [](T a, T b) { return a / b; }>},
};

template <class T>
constexpr std::pair<Op, Compute> for_integers[] = {
    {Op::Neg, wrapping<T, [](uint64_t x, uint64_t) { return -x; }>},
    {Op::Abs,
     [](Scalar a, Scalar, Scalar) {
       const auto bits = static_cast<uint64_t>(a.integer);
       return scalar<T>(static_cast<T>(a.integer < 0 ? -bits : bits));
     }},
    {Op::Not, wrapping<T, [](uint64_t x, uint64_t) { return ~x; }>},
    {Op::Add, wrapping<T, [](uint64_t a, uint64_t b) { return a + b; }>},
    {Op::Sub, wrapping<T, [](uint64_t a, uint64_t b) { return a - b; }>},
    {Op::Mul, wrapping<T, [](uint64_t a, uint64_t b) { return a * b; }>},
    {Op::And, wrapping<T, [](uint64_t a, uint64_t b) { return a & b; }>},
    {Op::Or, wrapping<T, [](uint64_t a, uint64_t b) { return a | b; }>},
    {Op::Xor, wrapping<T, [](uint64_t a, uint64_t b) { return a ^ b; }>},
};

constexpr std::pair<Op, Compute> for_bool[] = {
    {Op::Not, unary<bool, [](bool x) { return !x; }>},
    {Op::And, binary<bool, [](bool a, bool b) { return a && b; }>},
    {Op::Or, binary<bool, [](bool a, bool b) { return a || b; }>},
    {Op::Xor, binary<bool, [](bool a, bool b) { return a != b; }>},
};

template <size_t count>
Compute found(const std::pair<Op, Compute> (&table)[count], Op op) {
  for (const auto& [known, compute] : table)
    if (known == op) return compute;
  return nullptr;
}

template <class T>
Compute found_for(Op op) {
  if (Compute compute = found(for_all<T>, op)) return compute;
  if constexpr (std::is_floating_point_v<T>) {
    return found(for_floats<T>, op);
  } else if constexpr (std::is_same_v<T, bool>) {
    return found(for_bool, op);
  } else {
    return found(for_integers<T>, op);
  }
}

/// C++ leaves open what becomes of a number that the integer cannot hold; x86 makes it the smallest.
int64_t whole_part(double value) {
  constexpr double limit = 9223372036854775808.0;
  return value >= -limit && value < limit ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min();
}

template <class From, class To>
Scalar converted(Scalar a, Scalar, Scalar) {
  const From value = get<From>(a);
  if constexpr (std::is_same_v<To, bool>) return scalar<bool>(value != 0);
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    return scalar<To>(static_cast<To>(whole_part(value)));
  return scalar<To>(static_cast<To>(value));
}

Compute cast_of(Type from, Type to) {
  return with_type(from, [&]<class From>(From) {
    return with_type(to, []<class To>(To) -> Compute { return converted<From, To>; });
  });
}

Scalar selected(Scalar a, Scalar b, Scalar c) { return a.integer ? b : c; }

/// From the operator that joins two values to one.
Op joining(Op fold) {
  constexpr Op operators[] = {Op::Add, Op::Mul, Op::Max, Op::Min};
  return operators[static_cast<int32_t>(fold) - static_cast<int32_t>(Op::ReduceSum)];
}

template <class T>
Scalar joined_with_none(Op fold) {
  using Limits = std::numeric_limits<T>;
  constexpr bool endless = Limits::has_infinity;
  if (fold == Op::ReduceMax) return scalar<T>(endless ? -Limits::infinity() : Limits::lowest());
  if (fold == Op::ReduceMin) return scalar<T>(endless ? Limits::infinity() : Limits::max());
  return scalar<T>(fold == Op::ReduceProduct);
}

}  // namespace

Compute compute_of(Op op, Type from, Type to) {
  if (op == Op::Cast) return cast_of(from, to);
  if (op == Op::Select) return selected;
  return with_type(from, [&]<class T>(T) { return found_for<T>(op); });
}

Scalar read(Type type, const void* memory, int64_t place) {
  return with_type(type, [&]<class T>(T) { return scalar<T>(static_cast<const T*>(memory)[place]); });
}

void write(Type type, Scalar value, void* memory, int64_t place) {
  with_type(type, [&]<class T>(T) { static_cast<T*>(memory)[place] = get<T>(value); });
}

Scalar of_number(Type type, Number number) {
  return with_type(type, [&]<class T>(T) {
    if constexpr (std::is_floating_point_v<T>) return scalar<T>(static_cast<T>(number.real));
    return scalar<T>(static_cast<T>(number.integer));
  });
}

Total::Total(Op fold, Type type)
    : type_(type),
      is_product_(fold == Op::ReduceProduct),
      is_wide_(kind_of(type) == Floats && (fold == Op::ReduceSum || is_product_)),
      add_(compute_of(joining(fold), type, type)),
      empty_(with_type(type, [&]<class T>(T) { return joined_with_none<T>(fold); })) {
  clear();
}

void Total::clear() {
  wide_ = is_product_ ? 1 : 0;
  narrow_ = empty_;
}

void Total::add(Scalar value) {
  if (!is_wide_) {
    narrow_ = add_(narrow_, value, {});
    return;
  }
  const long double element = type_ == Type::F32 ? value.single : value.real;
  wide_ = is_product_ ? wide_ * element : wide_ + element;
}

Scalar Total::value() const {
  if (!is_wide_) return narrow_;
  return type_ == Type::F32 ? scalar(static_cast<float>(wide_)) : scalar(static_cast<double>(wide_));
}

}  // namespace tandem::loops
