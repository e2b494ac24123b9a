// How far functions are off, in units of the last place, beside libtorch's; and what they make of numbers at
// the ends.
#include "native/launches.h"

#include <ATen/ATen.h>

#include <cstdio>
#include <cstdlib>

namespace tandem::native {
namespace {

using loops::Op;
using loops::Type;

struct Function {
  Op op;
  const char* name;
  long double (*exact)(long double);
  at::Tensor (*of_libtorch)(const at::Tensor&);
  double allowed = 1.5;
};

long double sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }

constexpr Function functions[] = {
    {Op::Exp, "exp", std::exp, at::exp},
    {Op::Expm1, "expm1", std::expm1, at::expm1},
    {Op::Log, "log", std::log, at::log},
    {Op::Log1p, "log1p", std::log1p, at::log1p},
    {Op::Tanh, "tanh", std::tanh, at::tanh},
    {Op::Erf, "erf", std::erf, at::erf},
    {Op::Sigmoid, "sigmoid", sigmoid, at::sigmoid, 2.5},
    {Op::Sin, "sin", std::sin, at::sin},
    {Op::Cos, "cos", std::cos, at::cos},
    {Op::Sqrt, "sqrt", std::sqrt, at::sqrt, 0.5},
};

template <class T>
constexpr Type type_of = std::is_same_v<T, float> ? Type::F32 : Type::F64;

loops::Kernel kernel_of(Op op, Type type, int32_t width) {
  loops::Kernel kernel;
  kernel.kept = 1;
  kernel.width = width;
  kernel.buffers = {{type, loops::Step::One}, {type, loops::Step::One}};
  kernel.exprs = {{Op::Load, type, 0}, {op, type, 0}};
  kernel.stores = {{1, 1}};
  return kernel;
}

template <class T>
std::vector<T> computed(Op op, std::vector<T> x, int32_t width = 32) {
  const CodePointer code = code_of(std::vector{kernel_of(op, type_of<T>, width)}).front();
  const auto count = static_cast<int64_t>(x.size());
  std::vector<T> results(x.size());
  const int64_t shape[] = {count, 0, count, 1, 1};
  void* const buffers[] = {x.data(), results.data()};
  code->entry()(buffers, shape, nullptr, 0, 1);
  return results;
}

template <class T>
std::vector<T> computed_by_libtorch(const Function& function, const std::vector<T>& x) {
  const at::Tensor in = at::tensor(x), out = function.of_libtorch(in);
  return {out.const_data_ptr<T>(), out.const_data_ptr<T>() + x.size()};
}

/// Infinity counts as the number behind the largest one.
template <class T>
long double error_of(T value, long double exact) {
  using Limits = std::numeric_limits<T>;
  if (exact != exact || value != value) return exact != exact && value != value ? 0 : INFINITY;
  const long double end = std::ldexp(1.0L, Limits::max_exponent);
  const auto bounded = [&](long double x) { return std::clamp(x, -end, end); };
  const int exponent = exact == 0 ? Limits::min_exponent : std::ilogb(bounded(exact)) + 1;
  const long double unit = std::ldexp(1.0L, std::max(exponent, Limits::min_exponent) - Limits::digits);
  return std::fabs(bounded(value) - bounded(exact)) / unit;
}

/// Numbers of all sizes, spread evenly over their bits; TANDEM_MATH_STRIDE=1 has every float among them.
std::vector<float> numbers(float) {
  const char* asked = std::getenv("TANDEM_MATH_STRIDE");
  const uint64_t stride = asked ? std::strtoull(asked, nullptr, 10) : 16381;
  std::vector<float> numbers;
  for (uint64_t bits = 0; bits <= 0xFFFFFFFF; bits += stride)
    numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return numbers;
}

/// Half of them where functions are neither tiny nor at their ends.
std::vector<double> numbers(double) {
  std::mt19937_64 random(11);
  std::vector<double> numbers;
  for (int i = 0; i < 100'000; ++i) {
    const auto bits = random();
    const double mantissa = 1 + static_cast<double>(bits >> 12) * 0x1p-52;
    const double middle =
        std::ldexp(bits & 1 ? -mantissa : mantissa, static_cast<int>(bits % 2003 % 40) - 28);
    numbers.push_back(i % 2 ? middle : std::bit_cast<double>(bits));
  }
  return numbers;
}

struct Worst {
  long double error = 0;
  double at = 0;
};

template <class T>
Worst worst(const Function& function, const std::vector<T>& x, const std::vector<T>& results) {
  Worst worst;
  for (size_t i = 0; i < x.size(); ++i)
    if (const long double error = error_of(results[i], function.exact(x[i])); !(error <= worst.error))
      worst = {error, x[i]};
  return worst;
}

template <class T>
void tabulate(const char* type) {
  const std::vector<T> x = numbers(T());
  for (const Function& function : functions) {
    if (!supports(function.op, type_of<T>)) continue;
    const Worst ours = worst(function, x, computed(function.op, x));
    const Worst of_libtorch = worst(function, x, computed_by_libtorch(function, x));
    std::printf("%-8s %s %6.2Lf at %-14.7g libtorch's %6.2Lf at %-14.7g\n", function.name, type, ours.error,
                ours.at, of_libtorch.error, of_libtorch.at);
    EXPECT_LE(ours.error, function.allowed) << function.name << " of " << ours.at;
  }
}

TEST(MathFunctions, AreOffByLittle) {
  NEEDS_COMPILER();
  tabulate<float>("f32");
  tabulate<double>("f64");
}

template <class T>
void expect_right_ends() {
  using Limits = std::numeric_limits<T>;
  const T infinity = Limits::infinity(), least = Limits::denorm_min(), normal = Limits::min();
  std::vector<T> x = {T(0),   -T(0),  infinity, -infinity,     Limits::quiet_NaN(), least,
                      -least, normal, -normal,  Limits::max(), Limits::lowest(),    T(1),
                      T(-1)};
  x.resize(64, T(0.5));
  for (const Function& function : functions) {
    if (!supports(function.op, type_of<T>)) continue;
    for (int32_t width : {64, 32, 16, 8, 1}) {
      const std::vector<T> results = computed(function.op, x, width);
      for (size_t i = 0; i < x.size(); ++i) {
        const auto exact = function.exact(x[i]);
        EXPECT_LE(error_of(results[i], exact), function.allowed) << function.name << " of " << x[i];
        EXPECT_EQ(std::isinf(results[i]), std::isinf(T(exact))) << function.name << " of " << x[i];
      }
      EXPECT_EQ(std::signbit(results[1]), std::signbit(function.exact(-0.0L))) << function.name << " of -0";
    }
  }
}

TEST(MathFunctions, AreRightAtTheEnds) {
  NEEDS_COMPILER();
  expect_right_ends<float>();
  expect_right_ends<double>();
}

/// Quotients of wide registers round otherwise where the divisor has all its bits set, and nowhere else: in
/// single precision 1 + exp(-x) has for such x.
bool may_round_otherwise(Op op, double x) { return op == Op::Sigmoid && x > 0x1p-25 && x < 0x1p-22; }

template <class T>
void expect_same_in_all_widths() {
  std::vector<T> x = numbers(T());
  std::ranges::shuffle(x, std::mt19937_64(3));
  x.resize(20'000);
  for (const Function& function : functions) {
    if (!supports(function.op, type_of<T>)) continue;
    const std::vector<T> wide = computed(function.op, x);
    for (int32_t width : {64, 16, 8, 1}) {
      const std::vector<T> narrow = computed(function.op, x, width);
      for (size_t i = 0; i < x.size(); ++i) {
        if (may_round_otherwise(function.op, x[i])) continue;
        ASSERT_TRUE(narrow[i] == wide[i] || (narrow[i] != narrow[i] && wide[i] != wide[i]))
            << function.name << " of " << x[i] << " in " << width << " lanes";
      }
    }
  }
}

TEST(MathFunctions, AreTheSameInAllWidths) {
  NEEDS_COMPILER();
  expect_same_in_all_widths<float>();
  expect_same_in_all_widths<double>();
}

}  // namespace
}  // namespace tandem::native
