/// How results are judged that are rounded otherwise than eager's. Eager itself says how exact an element
/// is: by how far it moves when all that eager computes on the way is changed in its last bits.
#pragma once

#include <ATen/core/Tensor.h>

namespace tandem::fuzz {

struct Tolerance {
  at::ScalarType dtype;
  double ulp;              ///< what the last bit of 1 is worth
  double times;            ///< an element may differ by so many times as much as eager's moves
  double times_own_error;  ///< where the same in float64 tells eager's own error: so many times that
  double absolute;         ///< and by this much besides, for results too small to have all their bits
};

/// The table's row of a dtype; of others, which are never rounded, none.
const Tolerance* tolerance_of(at::ScalarType dtype);

/// Makes `moves`, undefined at first, hold how far each element has moved from `still` at most; infinity
/// where it became another kind of number, or an integer another integer.
void note_moves(at::Tensor& moves, const at::Tensor& still, const at::Tensor& moved);

/// Whether `got` is `want` within the tolerance: exactly so where nothing moves, and anything where a move
/// is infinite.
bool is_within(const at::Tensor& want, const at::Tensor& got, const at::Tensor& moves);

/// Whether they are one within the table's tolerance where nothing is known of eager's own moves: the last
/// bit of the largest element stands for them. Not finite in the same places; integers are the same.
bool is_near(const at::Tensor& want, const at::Tensor& got);

/// How far from `exact`, which is the same in more bits, `got` may be when eager's own result is `eager`.
bool is_as_exact(const at::Tensor& exact, const at::Tensor& eager, const at::Tensor& got);

}  // namespace tandem::fuzz
