/// Work on libtorch's own threads.
#pragma once

#include <cstdint>

namespace tandem::loops {

/// Calls `part(context, begin, end)` for ranges that make up 0 to `count`, of `grain` or more each, on as
/// many threads as libtorch has; on this one alone where there is one range.
void in_parallel(int64_t count, int64_t grain, void (*part)(const void* context, int64_t begin, int64_t end),
                 const void* context);

}  // namespace tandem::loops
