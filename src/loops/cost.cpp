#include "loops/cost.h"

#include <algorithm>

#include "loops/loose.h"
#include "loops/operators.h"

namespace tandem::loops {
namespace {

constexpr double of_launch = 500, of_call = 2000, of_byte = 0.05, of_step = 0.02;
/// Of units that are so short that the way to them takes longest: in loops, and in libtorch's calls.
constexpr double of_short_unit = 4, of_short_row = 2;

/// How many steps an operator takes, about: additions and the like are one.
double steps(Op op) {
  if (op == Op::Div || op == Op::Sqrt) return 4;
  if (op >= Op::Exp && op <= Op::Cos) return 16;
  return op == Op::Load || op == Op::Number ? 0 : 1;
}

int64_t count_along(const Launch& launch, int32_t first, int32_t last, const int64_t* strides) {
  int64_t count = 1;
  for (int32_t loop = first; loop < last; ++loop)
    if (!strides || strides[loop] != 0) count *= launch.shape[size_t(shape_header + loop)];
  return count;
}

double bytes(const Launch& launch) {
  const Kernel& kernel = launch.kernel;
  double all = 0;
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    if (launch.buffers[b].of == Memory::Of::None) continue;
    const int64_t* strides = &launch.shape[size_t(shape_header) + size_t(kernel.rank()) * (1 + b)];
    const bool is_scattered = kernel.buffers[b].lane == Step::Any;
    all += double(count_along(launch, 0, kernel.rank(), strides)) * double(size_of(kernel.buffers[b].type)) *
           (is_scattered ? 4 : 1);
  }
  return all;
}

/// The steps for one element of the reduced dimensions, all passes together.
double varying_steps(const Kernel& kernel) {
  const std::vector<bool> varies = varying(kernel);
  const std::vector<int32_t> done = passes(kernel);
  const int32_t last = done.empty() ? 0 : *std::max_element(done.begin(), done.end());
  double all = 0;
  for (int32_t pass = 0; pass <= last; ++pass) {
    std::vector<bool> wanted(kernel.exprs.size()), stored(kernel.exprs.size());
    for (const Store& store : kernel.stores) {
      wanted[size_t(store.expr)] = wanted[size_t(store.expr)] || done[size_t(store.expr)] == pass;
      // what an earlier pass stored is read again
      stored[size_t(store.expr)] = done[size_t(store.expr)] < pass;
    }
    for (size_t i = kernel.exprs.size(); i-- > 0;) {
      const Expr& expr = kernel.exprs[i];
      if (is_fold(expr) && done[i] == pass + 1) wanted[size_t(expr.a)] = true;
      if (!wanted[i] || !varies[i] || stored[i]) continue;
      all += steps(expr.op);
      for (int32_t operand : operands(expr)) wanted[size_t(operand)] = true;
    }
  }
  return all;
}

double kept_steps(const Kernel& kernel) {
  const std::vector<bool> varies = varying(kernel);
  double all = 0;
  for (size_t i = 0; i < kernel.exprs.size(); ++i)
    if (!varies[i]) all += steps(kernel.exprs[i].op);
  return all;
}

}  // namespace

double nanoseconds(const Launch& launch) {
  const Kernel& kernel = launch.kernel;
  const auto kept = double(count_along(launch, 0, kernel.kept, nullptr));
  const auto reduced = double(count_along(launch, kernel.kept, kernel.rank(), nullptr));
  const double alone = kernel.width == 1 ? 8 : 1;  // elements that are not computed side by side
  return of_launch + of_byte * bytes(launch) +
         (kernel.width == 1 ? of_short_unit * double(launch.units) : 0) +
         of_step * alone * kept * (reduced * varying_steps(kernel) + kept_steps(kernel));
}

double nanoseconds(const Fused& fused) {
  double all = 0;
  for (const Launch& launch : fused.launches) all += launch.nanoseconds;
  return all;
}

double nanoseconds_of_call(const Fused& fused) {
  double all = of_call;
  for (const Launch& launch : fused.launches)
    all += of_byte * bytes(launch) + (launch.kernel.width == 1 ? of_short_row * double(launch.units) : 0);
  return all;
}

bool only_moves(const Fused& fused) {
  return std::all_of(fused.launches.begin(), fused.launches.end(), [](const Launch& launch) {
    const auto& exprs = launch.kernel.exprs;
    return std::all_of(exprs.begin(), exprs.end(),
                       [](const Expr& expr) { return expr.op == Op::Load || expr.op == Op::Number; });
  });
}

}  // namespace tandem::loops
