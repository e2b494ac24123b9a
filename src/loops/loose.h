/// A kernel whose loops are not in order yet.
#pragma once

#include "loops/access.h"
#include "loops/launch.h"

namespace tandem::loops {

struct Loose {
  struct Slot {
    Memory memory;
    Access access;
    Type type;
    bool is_stored;
  };
  LoopNest nest;
  std::vector<Slot> slots;  ///< by the buffers that expressions name
  std::vector<Expr> exprs;
  std::vector<Number> numbers;
  std::vector<Store> stores;
};

/// Kept loops come first, and among them those with the longest steps; loops that lead on where the next
/// inner one ends become one with it. There is one at least.
void put_in_order(Loose& loose);

/// Without the expressions that no store needs, and the buffers that are neither loaded nor stored then.
void drop_unread(Loose& loose);

int64_t kept_count(const LoopNest& nest);
int64_t reduced_count(const LoopNest& nest);

/// Bytes of one element.
int64_t size_of(Type type);

}  // namespace tandem::loops
