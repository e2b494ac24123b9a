#include "loops/spread.h"

namespace tandem::loops {

std::optional<AlongLoops> spread(const LoopNest& nest, const std::vector<size_t>& loops, const Dims& sizes,
                                 std::optional<Split>& split) {
  AlongLoops along(nest.size());
  auto dim = int32_t(sizes.size()) - 1;
  int64_t step = 1;  // how much of the dimension the loops so far go through
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    const int64_t count = nest[*loop].size;
    while (dim >= 0 && step == sizes[size_t(dim)]) --dim, step = 1;
    if (dim < 0) return std::nullopt;
    const int64_t left = sizes[size_t(dim)] / step;
    if (left % count != 0) {
      if (count % left == 0) split = Split{*loop, left};
      return std::nullopt;
    }
    along[*loop] = {dim, step};
    step *= count;
  }
  while (dim >= 0 && step == sizes[size_t(dim)]) --dim, step = 1;
  if (dim >= 0) return std::nullopt;
  return along;
}

}  // namespace tandem::loops
