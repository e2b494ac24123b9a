#include "native/llvm/exponential.h"
#include "native/llvm/math.h"

// Coefficients are minimax fits: scripts/fit_math.py prints them.

namespace tandem::native {
namespace {

/// (tanh x - x) / x^3 as a polynomial of x^2.
constexpr double tanh_f32[] = {-0.3333333098963463,  0.13333212226064137,    -0.053947458932904722,
                               0.021704161335080401, -0.0081852758457231917, 0.0021496783649933827};
constexpr double small_tanh = 0.625;

/// erf x / x - 1 as a polynomial of x^2, for x up to 1.
constexpr double erf_f32[] = {0.12837916706316807,    -0.37612638483859606,   0.11283782747632934,
                              -0.026865445837429117,  0.0052210749092600041,  -0.00084847117731318871,
                              0.00011270546129762361, -9.6801393462948201e-06};
constexpr double erf_f64[] = {0.12837916709551259,     -0.37612638903183754,    0.11283791670955126,
                              -0.026866170645131218,   0.0052239776254416823,   -0.00085483270234036678,
                              0.00012055332978914017,  -1.492565023818136e-05,  1.6462110811747936e-06,
                              -1.6365769161646855e-07, 1.4806033352100678e-08,  -1.2277786055297273e-09,
                              9.3240037138248991e-11,  -6.1976328546524246e-12, 2.8079931635098668e-13};

/// -log(1 - erf x) as a polynomial of x - middle, up to where erf is 1.
constexpr double complement_f32[] = {
    7.8068153370012547,      5.3526811482009826,     0.94389354467228503,
    0.01085362592666716,     -0.0021743149537449364, 0.00041566157035059786,
    -7.4885729368869607e-05, 1.6271233695259684e-05, -8.8528547064966563e-07};
constexpr double complement_f64[] = {
    14.112437402148176,      7.2660995883651642,      0.96675305474183582,     0.005225658220852295,
    -0.00087368732204747284, 0.00014729778762897496,  -2.4386353241631299e-05, 3.8895525799114032e-06,
    -5.8566922585931198e-07, 8.0625051864744322e-08,  -9.5439898588833343e-09, 8.2765113949985563e-10,
    8.4615574163416773e-11,  -9.5768153873855612e-12, -1.1333473406229171e-12, -1.6413951871172482e-11,
    -5.8479837745393319e-12, -7.3399238289744737e-13, 5.6077789147568847e-13,  2.9428014232889115e-13,
    6.7442833987295788e-14,  7.5546512052595774e-15,  2.8226991420735302e-16};

struct Complement {
  std::span<const double> coefficients;
  double middle, end;
};

llvm::Value* erf_of_large(Builder& builder, const Lanes& lanes, llvm::Value* size) {
  const Complement of =
      lanes.is_double() ? Complement{complement_f64, 3.5, 6} : Complement{complement_f32, 2.5, 4};
  llvm::Value* place = builder.CreateFSub(lanes.at_most(size, of.end), lanes.number(of.middle));
  llvm::Value* power = builder.CreateFNeg(lanes.polynomial(place, of.coefficients));
  return builder.CreateFSub(lanes.number(1), plain_exponential(builder, lanes, power));
}

llvm::Value* tanh_by_expm1(Builder& builder, const Lanes& lanes, llvm::Value* x) {
  llvm::Value* size = lanes.at_most(lanes.abs(x), 20);
  llvm::Value* grown = emit_expm1(builder, lanes, builder.CreateFAdd(size, size));
  llvm::Value* result = builder.CreateFDiv(grown, builder.CreateFAdd(grown, lanes.number(2)));
  return lanes.with_sign(result, x);
}

}  // namespace

llvm::Value* emit_tanh(Builder& builder, const Lanes& lanes, llvm::Value* x) {
  if (lanes.is_double()) return tanh_by_expm1(builder, lanes, x);
  llvm::Value* square = builder.CreateFMul(x, x);
  llvm::Value* cube = builder.CreateFMul(square, x);
  llvm::Value* small = lanes.fma(cube, lanes.polynomial(square, tanh_f32), x);

  llvm::Value* size = lanes.abs(x);
  llvm::Value* bounded = lanes.at_most(size, 10);
  llvm::Value* grown = plain_exponential(builder, lanes, builder.CreateFAdd(bounded, bounded));
  llvm::Value* below_one = builder.CreateFDiv(lanes.number(2), builder.CreateFAdd(grown, lanes.number(1)));
  llvm::Value* large = lanes.with_sign(builder.CreateFSub(lanes.number(1), below_one), x);
  return builder.CreateSelect(builder.CreateFCmpOLT(size, lanes.number(small_tanh)), small, large);
}

llvm::Value* emit_erf(Builder& builder, const Lanes& lanes, llvm::Value* x) {
  const auto near = lanes.is_double() ? std::span<const double>(erf_f64) : std::span<const double>(erf_f32);
  llvm::Value* small = lanes.fma(x, lanes.polynomial(builder.CreateFMul(x, x), near), x);
  llvm::Value* size = lanes.abs(x);
  llvm::Value* large = lanes.with_sign(erf_of_large(builder, lanes, size), x);
  return builder.CreateSelect(builder.CreateFCmpOLT(size, lanes.number(1)), small, large);
}

}  // namespace tandem::native
