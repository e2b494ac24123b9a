#include "loops/loose.h"

#include <algorithm>
#include <numeric>

#include "loops/operators.h"

namespace tandem::loops {
namespace {

/// The buffers with the most elements first: their order matters most.
std::vector<const Access*> by_elements(const Loose& loose) {
  std::vector<std::pair<int64_t, const Access*>> counted;
  for (const Loose::Slot& slot : loose.slots)
    counted.emplace_back(elements(loose.nest, slot.access) * (slot.is_stored ? 2 : 1), &slot.access);
  std::stable_sort(counted.begin(), counted.end(), [](auto& a, auto& b) { return a.first > b.first; });
  std::vector<const Access*> sorted;
  for (const auto& [count, access] : counted) sorted.push_back(access);
  return sorted;
}

/// Whether loop `a` belongs outside of loop `b`.
bool is_outer(const LoopNest& nest, const std::vector<const Access*>& accesses, size_t a, size_t b) {
  if (nest[a].reduced != nest[b].reduced) return nest[b].reduced;
  for (const Access* access : accesses) {
    const int64_t of_a = access->strides[a], of_b = access->strides[b];
    if (of_a != of_b && of_a != 0 && of_b != 0) return of_a > of_b;
  }
  return a < b;
}

/// By insertion: the order of pairs need not be transitive.
std::vector<size_t> order_of(const Loose& loose) {
  const std::vector<const Access*> accesses = by_elements(loose);
  std::vector<size_t> order;
  for (size_t loop = 0; loop < loose.nest.size(); ++loop) {
    auto place = order.end();
    while (place != order.begin() && is_outer(loose.nest, accesses, loop, *(place - 1))) --place;
    order.insert(place, loop);
  }
  return order;
}

bool leads_on(const Loose& loose, size_t outer) {
  const Loop &a = loose.nest[outer], &b = loose.nest[outer + 1];
  return a.reduced == b.reduced &&
         std::all_of(loose.slots.begin(), loose.slots.end(), [&](const Loose::Slot& slot) {
           return slot.access.strides[outer] == slot.access.strides[outer + 1] * b.size;
         });
}

void join(Loose& loose, size_t outer) {
  const auto at = int64_t(outer);
  loose.nest[outer + 1].size *= loose.nest[outer].size;
  loose.nest.erase(loose.nest.begin() + at);
  for (Loose::Slot& slot : loose.slots) slot.access.strides.erase(slot.access.strides.begin() + at);
}

}  // namespace

/// The place of each thing among those that stay.
static std::vector<int32_t> places_of(const std::vector<bool>& stays) {
  std::vector<int32_t> places;
  int32_t next = 0;
  for (bool each : stays) places.push_back(each ? next++ : -1);
  return places;
}

void put_in_order(Loose& loose) {
  const std::vector<size_t> order = order_of(loose);
  LoopNest nest;
  for (size_t loop : order) nest.push_back(loose.nest[loop]);
  for (Loose::Slot& slot : loose.slots) {
    Dims strides;
    for (size_t loop : order) strides.push_back(slot.access.strides[loop]);
    slot.access.strides = std::move(strides);
  }
  loose.nest = std::move(nest);
  for (size_t outer = loose.nest.size(); outer-- > 1;)
    if (leads_on(loose, outer - 1)) join(loose, outer - 1);
  if (!loose.nest.empty()) return;
  loose.nest.push_back({1, false});
  for (Loose::Slot& slot : loose.slots) slot.access.strides.push_back(slot.is_stored ? 1 : 0);
}

void drop_unread(Loose& loose) {
  std::vector<bool> read(loose.exprs.size()), used(loose.slots.size());
  for (const Store& store : loose.stores) read[size_t(store.expr)] = used[size_t(store.buffer)] = true;
  for (size_t i = loose.exprs.size(); i-- > 0;) {
    if (!read[i]) continue;
    for (int32_t operand : operands(loose.exprs[i])) read[size_t(operand)] = true;
    if (names_buffer(loose.exprs[i])) used[size_t(loose.exprs[i].a)] = true;
  }
  const std::vector<int32_t> expr_place = places_of(read), slot_place = places_of(used);
  for (Expr& expr : loose.exprs) {
    const int32_t count = operator_of(expr.op).operands;
    if (names_buffer(expr)) expr.a = slot_place[size_t(expr.a)];
    if (count > 0) expr.a = expr_place[size_t(expr.a)];
    if (count > 1) expr.b = expr_place[size_t(expr.b)];
    if (count > 2) expr.c = expr_place[size_t(expr.c)];
  }
  for (Store& store : loose.stores)
    store = {expr_place[size_t(store.expr)], slot_place[size_t(store.buffer)]};
  size_t expr = 0, slot = 0;
  std::erase_if(loose.exprs, [&](const Expr&) { return !read[expr++]; });
  std::erase_if(loose.slots, [&](const Loose::Slot&) { return !used[slot++]; });
}

int64_t kept_count(const LoopNest& nest) {
  int64_t count = 1;
  for (const Loop& loop : nest) count *= loop.reduced ? 1 : loop.size;
  return count;
}

int64_t reduced_count(const LoopNest& nest) {
  int64_t count = 1;
  for (const Loop& loop : nest) count *= loop.reduced ? loop.size : 1;
  return count;
}

int64_t size_of(Type type) {
  static constexpr int64_t sizes[] = {1, 1, 1, 2, 4, 8, 4, 8};
  return sizes[size_t(type)];
}

}  // namespace tandem::loops
