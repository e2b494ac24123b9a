/// Which blocks to keep so that the fewest bytes are kept and the backward can compute the rest of what it
/// needs.
#pragma once

#include "partition/blocks.h"

namespace tandem {

/// Which blocks are kept where the backward may compute those again that `may_repeat` names; among equal cuts
/// the one that computes the least again. Throws Error that says why where no cut will do.
std::vector<bool> smallest_cut(const Blocks& blocks, const std::vector<bool>& may_repeat);

}  // namespace tandem
