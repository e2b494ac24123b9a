/// Kernels as they are written down in tests, and some that several tests look at.
#pragma once

#include "loops/kernel.h"

namespace tandem::loops {

struct Written {
  Kernel kernel;

  int32_t buffer(Type type, Step lane, bool reduced_varies = false) {
    kernel.buffers.push_back({type, lane, reduced_varies});
    return static_cast<int32_t>(kernel.buffers.size()) - 1;
  }
  int32_t expr(Op op, Type type, int32_t a, int32_t b = -1, int32_t c = -1) {
    kernel.exprs.push_back({op, type, a, b, c});
    return static_cast<int32_t>(kernel.exprs.size()) - 1;
  }
  int32_t f32(Op op, int32_t a, int32_t b = -1, int32_t c = -1) { return expr(op, Type::F32, a, b, c); }
  int32_t load(int32_t buffer) { return expr(Op::Load, kernel.buffers[buffer].type, buffer); }
  int32_t number(Type type) { return expr(Op::Number, type, kernel.numbers++); }
  void store(int32_t expr, int32_t buffer) { kernel.stores.push_back({expr, buffer}); }
};

/// b2 = relu(b0 + n0 * b1); b1 is broadcast along the lanes.
inline Kernel pointwise() {
  Written w;
  w.kernel.kept = 2;
  w.kernel.width = 8;
  const int32_t x = w.buffer(Type::F32, Step::Any), y = w.buffer(Type::F32, Step::Zero),
                out = w.buffer(Type::F32, Step::One);
  const int32_t first = w.load(x), scaled = w.f32(Op::Mul, w.number(Type::F32), w.load(y)),
                sum = w.f32(Op::Add, first, scaled), zero = w.number(Type::F32);
  w.store(w.f32(Op::Max, sum, zero), out);
  return w.kernel;
}

/// b1 = the sum of each row of b0, or of each column where lanes are kept.
inline Kernel sum_of_rows(Type type, bool lane_kept) {
  Written w;
  w.kernel.kept = w.kernel.reduced = 1;
  w.kernel.lane_kept = lane_kept;
  w.kernel.width = 8;
  const int32_t x = w.buffer(type, Step::One, true), out = w.buffer(type, lane_kept ? Step::One : Step::Zero);
  w.store(w.expr(Op::ReduceSum, type, w.load(x)), out);
  return w.kernel;
}

/// b1 = the place of the first element of each row of b0 that is the largest of them, or NaN; b2 numbers a
/// row, and n0 is more than there are.
inline Kernel place_of_largest() {
  Written w;
  w.kernel.kept = w.kernel.reduced = 1;
  w.kernel.lane_kept = false;
  const int32_t x = w.buffer(Type::F32, Step::One, true), out = w.buffer(Type::I64, Step::Zero),
                numbers = w.buffer(Type::Bool, Step::One, true);
  const int32_t element = w.load(x), largest = w.f32(Op::ReduceMax, element),
                is_largest = w.expr(Op::Eq, Type::Bool, element, largest),
                is_nan = w.expr(Op::Ne, Type::Bool, element, element),
                is_found = w.expr(Op::Or, Type::Bool, is_largest, is_nan),
                place = w.expr(Op::Offset, Type::I32, numbers),
                found = w.expr(Op::Select, Type::I32, is_found, place, w.number(Type::I32));
  w.store(w.expr(Op::Cast, Type::I64, w.expr(Op::ReduceMin, Type::I32, found)), out);
  return w.kernel;
}

/// b1 = the softmax of each row of b0, with two folds of which one reads the other.
inline Kernel softmax() {
  Written w;
  w.kernel.kept = w.kernel.reduced = 1;
  w.kernel.lane_kept = false;
  const int32_t x = w.buffer(Type::F32, Step::One, true), out = w.buffer(Type::F32, Step::One, true);
  const int32_t element = w.load(x), largest = w.f32(Op::ReduceMax, element),
                power = w.f32(Op::Exp, w.f32(Op::Sub, element, largest)), total = w.f32(Op::ReduceSum, power);
  w.store(w.f32(Op::Div, power, total), out);
  return w.kernel;
}

/// b3 = the layer norm of each row of b0, of weights b1 and n0 as epsilon; b2 = the mean, b4 = its scale. n1
/// is one by the length of a row.
inline Kernel layer_norm() {
  Written w;
  w.kernel.kept = w.kernel.reduced = 1;
  w.kernel.lane_kept = false;
  w.kernel.width = 8;
  const int32_t x = w.buffer(Type::F32, Step::One, true), weight = w.buffer(Type::F32, Step::One, true),
                means = w.buffer(Type::F32, Step::Zero), out = w.buffer(Type::F32, Step::One, true),
                scales = w.buffer(Type::F32, Step::Zero);
  const int32_t element = w.load(x), epsilon = w.number(Type::F32), share = w.number(Type::F32);
  const int32_t mean = w.f32(Op::Mul, w.f32(Op::ReduceSum, element), share),
                centred = w.f32(Op::Sub, element, mean);
  const int32_t squares = w.f32(Op::ReduceSum, w.f32(Op::Mul, centred, centred)),
                variance = w.f32(Op::Add, w.f32(Op::Mul, squares, share), epsilon),
                root = w.f32(Op::Sqrt, variance);
  w.store(mean, means);
  w.store(w.f32(Op::Mul, w.f32(Op::Div, centred, root), w.load(weight)), out);
  w.store(root, scales);
  return w.kernel;
}

/// b1 = sums of b0 along columns, in pieces: the first kept dimension is the piece, the second the column.
inline Kernel cut_sum_of_columns() {
  Written w;
  w.kernel.kept = 2;
  w.kernel.reduced = 1;
  w.kernel.width = 8;
  w.kernel.cut = true;
  const int32_t x = w.buffer(Type::F64, Step::One, true), out = w.buffer(Type::F64, Step::One);
  w.store(w.expr(Op::ReduceSum, Type::F64, w.load(x)), out);
  return w.kernel;
}

}  // namespace tandem::loops
