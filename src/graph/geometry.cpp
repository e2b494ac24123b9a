#include "graph/geometry.h"

#include <algorithm>
#include <map>

namespace tandem {
namespace {

/// One direction of a grid that two boxes lie in: how far each goes, and where the second begins.
struct Direction {
  int64_t first = 1, second = 1, shift = 0;
  int64_t reach() const { return std::max(first, shift + second) - 1; }
  bool apart() const { return shift >= first; }
};

/// False where a box goes twice in one direction, or repeats its elements.
bool add_box(std::map<int64_t, Direction, std::greater<>>& grid, const Placement& box,
             int64_t Direction::* extent) {
  for (size_t d = 0; d < box.sizes.size(); ++d) {
    if (box.sizes[d] == 1) continue;
    int64_t& length = grid[box.strides[d]].*extent;
    if (length != 1 || box.strides[d] <= 0) return false;
    length = box.sizes[d];
  }
  return true;
}

}  // namespace

bool same_strides(at::IntArrayRef sizes, at::IntArrayRef a, at::IntArrayRef b) {
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1 && a[d] != b[d]) return false;
  return true;
}

bool same_strides(const TensorMeta& a, const TensorMeta& b) {
  return same_strides(a.sizes, a.strides, b.strides);
}

bool is_dense(const TensorMeta& meta) {
  if (meta.numel() == 0) return true;
  c10::SmallVector<std::pair<int64_t, int64_t>, 5> dims;
  for (size_t d = 0; d < meta.sizes.size(); ++d)
    if (meta.sizes[d] != 1) dims.emplace_back(meta.strides[d], meta.sizes[d]);
  std::sort(dims.begin(), dims.end());
  int64_t expected = 1;
  for (auto [stride, size] : dims) {
    if (stride != expected) return false;
    expected *= size;
  }
  return true;
}

bool is_surely_injective(const TensorMeta& meta) {
  if (meta.numel() == 0) return true;
  c10::SmallVector<std::pair<int64_t, int64_t>, 5> dims;
  for (size_t d = 0; d < meta.sizes.size(); ++d)
    if (meta.sizes[d] != 1) dims.emplace_back(meta.strides[d], meta.sizes[d]);
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (auto [stride, size] : dims) {
    if (stride <= reach) return false;
    reach += stride * (size - 1);
  }
  return true;
}

Placement placement_of(const TensorMeta& meta) {
  return {meta.sizes, meta.strides, meta.offset, int64_t(c10::elementSize(meta.dtype))};
}

Placement placement_of(const at::Tensor& strided) {
  return {strided.sizes(), strided.strides(), strided.storage_offset(), int64_t(strided.itemsize())};
}

std::pair<int64_t, int64_t> byte_range(const Placement& placement) {
  int64_t last = placement.offset;
  for (size_t d = 0; d < placement.sizes.size(); ++d) {
    if (placement.sizes[d] == 0)
      return {placement.offset * placement.element_bytes, placement.offset * placement.element_bytes};
    last += (placement.sizes[d] - 1) * placement.strides[d];
  }
  return {placement.offset * placement.element_bytes, (last + 1) * placement.element_bytes};
}

bool surely_apart(const Placement& a, const Placement& b) {
  if (b.offset * b.element_bytes < a.offset * a.element_bytes) return surely_apart(b, a);
  auto [a_begin, a_end] = byte_range(a);
  auto [b_begin, b_end] = byte_range(b);
  if (a_begin == a_end || b_begin == b_end || a_end <= b_begin) return true;
  if (a.element_bytes != b.element_bytes) return false;
  std::map<int64_t, Direction, std::greater<>> grid;
  grid[1];
  if (!add_box(grid, a, &Direction::first) || !add_box(grid, b, &Direction::second)) return false;
  int64_t distance = b.offset - a.offset;
  for (auto& [stride, direction] : grid) {
    direction.shift = distance / stride;
    distance %= stride;
  }
  // A place has one set of coordinates only where all smaller steps together stay below each step.
  bool beside = false;
  int64_t reach = 0;
  for (auto at = grid.rbegin(); at != grid.rend(); ++at) {
    if (at->first <= reach) return false;
    reach += at->first * at->second.reach();
    beside = beside || at->second.apart();
  }
  return beside;
}

bool surely_strangers(const Placement& a, const Placement& b) {
  auto is_empty = [](const Placement& placement) {
    return std::find(placement.sizes.begin(), placement.sizes.end(), 0) != placement.sizes.end();
  };
  return !is_empty(a) && !is_empty(b) && surely_apart(a, b);
}

bool may_overlap(const TensorMeta& a, const TensorMeta& b) {
  return a.storage == b.storage && !surely_apart(placement_of(a), placement_of(b));
}

}  // namespace tandem
