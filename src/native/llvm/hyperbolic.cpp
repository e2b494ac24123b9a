#include "native/llvm/exponential.h"
#include "native/llvm/math.h"

// scripts/fit_math.py prints the coefficients.

namespace tandem::native {
namespace {

/// (tanh x - x) / x^3 as a polynomial of x^2.
constexpr double tanh_f32[] = {-0.33333330906770253, 0.13333209767000689,    -0.05394720462258356,
                               0.021702968840812402, -0.0081826777857432042, 0.0021475402044619308};
constexpr double small_tanh = 0.625;

/// erf x / x - 1 as a polynomial of x^2, for x up to 1.
constexpr double erf_f32[] = {0.12837916706753943,    -0.37612638527454723,   0.11283783454160543,
                              -0.026865488644514282,  0.0052211981611856636,  -0.00084865308191441025,
                              0.00011283844468502758, -9.7183016261772996e-06};
constexpr double erf_f64[] = {0.12837916709551259,     -0.37612638903183754,    0.11283791670955126,
                              -0.026866170645131221,   0.0052239776254417222,   -0.00085483270234068553,
                              0.00012055332979079813,  -1.4925650244031185e-05, 1.6462110955504415e-06,
                              -1.6365771648996946e-07, 1.4806063537893697e-08,  -1.2278037528117848e-09,
                              9.3253733064428042e-11,  -6.2020241028009755e-12, 2.8142776963716814e-13};

/// tanh x = x - x z below / (above + z below), of z = x^2.
constexpr double tanh_below[] = {11486475, 810810, 12870, 44};
constexpr double tanh_above[] = {34459425, 4729725, 135135, 990, 1};

/// -log(1 - erf x) as a polynomial of x - 1, from there to where erf is 1.
constexpr double complement_f32[] = {
    1.8496055098311677,      2.6389675305670246,     0.84310685118694939,
    0.041564784642493448,    -0.010050037445484068,  0.0020171910931814836,
    -0.00029362138953898618, 2.3304139702884842e-05, -2.5131693824130795e-07};
constexpr double complement_f64[] = {
    1.8496055099332482,      2.6389675142347757,     0.84310725635941264,     0.041561098025081268,
    -0.010033825179147565,   0.0019779012160447865,  -0.00023731643602328112, -2.6296322964939586e-05,
    2.7198964522211306e-05,  -9.671365516317806e-06, 2.1319284757446613e-06,  -2.0480384402109589e-07,
    -5.8015757422071813e-08, 3.3392793111781525e-08, -8.5191668847959508e-09, 1.3191701503298668e-09,
    -1.1933268355204878e-10, 4.8653295424420527e-12};

struct Complement {
  std::span<const double> coefficients;
  double end;
};

llvm::Value* erf_of_large(Builder& builder, const Lanes& lanes, llvm::Value* size) {
  const Complement of = lanes.is_double() ? Complement{complement_f64, 6} : Complement{complement_f32, 4};
  llvm::Value* place = builder.CreateFSub(lanes.at_most(size, of.end), lanes.number(1));
  llvm::Value* power = builder.CreateFNeg(lanes.polynomial(place, of.coefficients));
  return builder.CreateFSub(lanes.number(1), plain_exponential(builder, lanes, power));
}

/// e^2x + 1, for x from 0 on; where tanh is 1 that of a smaller x.
llvm::Value* grown_by_one(Builder& builder, const Lanes& lanes, llvm::Value* size) {
  llvm::Value* bounded = lanes.at_most(size, lanes.is_double() ? 20 : 10);
  llvm::Value* grown = plain_exponential(builder, lanes, builder.CreateFAdd(bounded, bounded));
  return builder.CreateFAdd(grown, lanes.number(1));
}

llvm::Value* tanh_by_polynomial(Builder& builder, const Lanes& lanes, llvm::Value* size,
                                llvm::Value* is_small) {
  llvm::Value* square = builder.CreateFMul(size, size);
  llvm::Value* cube = builder.CreateFMul(square, size);
  llvm::Value* small = lanes.fma(cube, lanes.polynomial(square, tanh_f32), size);
  llvm::Value* below_one = lanes.quotient(lanes.number(2), grown_by_one(builder, lanes, size));
  return builder.CreateSelect(is_small, small, builder.CreateFSub(lanes.number(1), below_one));
}

/// One division, the slowest step, serves small and large ones.
llvm::Value* tanh_by_ratio(Builder& builder, const Lanes& lanes, llvm::Value* size, llvm::Value* is_small) {
  llvm::Value* square = builder.CreateFMul(size, size);
  llvm::Value* below = builder.CreateFMul(square, lanes.polynomial(square, tanh_below));
  llvm::Value* sum = builder.CreateFAdd(below, lanes.polynomial(square, tanh_above));
  llvm::Value* above = builder.CreateSelect(is_small, builder.CreateFMul(size, below), lanes.number(2));
  llvm::Value* under = builder.CreateSelect(is_small, sum, grown_by_one(builder, lanes, size));
  llvm::Value* whole = builder.CreateSelect(is_small, size, lanes.number(1));
  return builder.CreateFSub(whole, builder.CreateFDiv(above, under));
}

}  // namespace

llvm::Value* emit_tanh(Builder& builder, const Lanes& lanes, llvm::Value* x) {
  llvm::Value* size = lanes.abs(x);
  llvm::Value* is_small = builder.CreateFCmpOLT(size, lanes.number(small_tanh));
  llvm::Value* result = lanes.is_double() ? tanh_by_ratio(builder, lanes, size, is_small)
                                          : tanh_by_polynomial(builder, lanes, size, is_small);
  return lanes.with_sign(result, x);
}

llvm::Value* emit_erf(Builder& builder, const Lanes& lanes, llvm::Value* x) {
  const auto near = lanes.is_double() ? std::span<const double>(erf_f64) : std::span<const double>(erf_f32);
  llvm::Value* small = lanes.fma(x, lanes.polynomial(builder.CreateFMul(x, x), near), x);
  llvm::Value* size = lanes.abs(x);
  llvm::Value* large = lanes.with_sign(erf_of_large(builder, lanes, size), x);
  return builder.CreateSelect(builder.CreateFCmpOLT(size, lanes.number(1)), small, large);
}

}  // namespace tandem::native
