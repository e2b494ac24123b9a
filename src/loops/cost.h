/// How long launches take, about.
#pragma once

#include "loops/launch.h"

namespace tandem::loops {

/// In nanoseconds on a machine of middling speed: what is read and written, and what is computed.
double nanoseconds(const Launch& launch);
double nanoseconds(const Fused& fused);
/// Of what only moves, as one call of libtorch.
double nanoseconds_of_call(const Fused& fused);

/// Whether nothing but copying, or filling, is done.
bool only_moves(const Fused& fused);

}  // namespace tandem::loops
