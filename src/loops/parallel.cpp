// Compiled by itself: libtorch's header only runs in parallel where the compiler is told of OpenMP.
#include "loops/parallel.h"

#include <ATen/Parallel.h>

namespace tandem::loops {

void in_parallel(int64_t count, int64_t grain, void (*part)(const void* context, int64_t begin, int64_t end),
                 const void* context) {
  at::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) { part(context, begin, end); });
}

}  // namespace tandem::loops
