#include "backends/kept_memory.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <utility>

namespace tandem {
namespace {

/// What malloc hands out again without asking the system is left to it.
constexpr size_t least_kept = 16 << 10;
constexpr size_t alignment = 64;
/// Regions are made of these, which systems that like large pages give as one. Asking for such pages is no
/// gain: a first step waits for the system to clear all of them.
constexpr size_t region_step = 2 << 20;

struct Freeing {
  void operator()(void* memory) const { std::free(memory); }
};
using Region = std::unique_ptr<void, Freeing>;

Region region_of(size_t bytes) {
  Region region(std::aligned_alloc(region_step, bytes));
  if (!region) throw std::bad_alloc();
  return region;
}

std::atomic<bool> is_kept = true;

/// A stretch of a region: memory of one tensor, or of none.
struct Block {
  char* begin;
  size_t bytes;
  bool alive;
  Block *before, *behind;  ///< in its region
  Region region;           ///< of the first one
};

/// Small blocks first, as the smallest that is large enough is wanted.
struct BySize {
  bool operator()(const Block* a, const Block* b) const {
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->begin < b->begin;
  }
};

class KeptMemory {
 public:
  /// Tensors may die when the process ends, behind everything static.
  static KeptMemory& instance() {
    static auto* kept = new KeptMemory;
    return *kept;
  }

  c10::DataPtr take(size_t bytes) {
    std::lock_guard lock(mutex_);
    bytes = (bytes + alignment - 1) / alignment * alignment;
    Block* block = smallest_of(bytes);
    block->alive = true;
    split(*block, bytes);
    count_taken(block->bytes);
    return {block->begin, block, [](void* taken) { instance().give_back(*static_cast<Block*>(taken)); },
            c10::Device(c10::kCPU)};
  }

  size_t held() {
    std::lock_guard lock(mutex_);
    return held_;
  }

  void release() {
    std::lock_guard lock(mutex_);
    most_alive_ = most_alive_before_ = alive_;
    release_beyond(0);
  }

 private:
  /// Of a new region where none is large enough.
  Block* smallest_of(size_t bytes) {
    Block wanted{nullptr, bytes, false, nullptr, nullptr, {}};
    const auto found = dead_.lower_bound(&wanted);
    if (found == dead_.end()) return new_region(bytes);
    Block* block = *found;
    dead_.erase(found);
    return block;
  }

  Block* new_region(size_t bytes) {
    // Large regions are torn less: a region lives as long as any tensor in it.
    const size_t whole = (std::max(bytes, held_ / 4) + region_step - 1) / region_step * region_step;
    Region memory = region_of(whole);
    auto* begin = static_cast<char*>(memory.get());
    held_ += whole;
    return new Block{begin, whole, true, nullptr, nullptr, std::move(memory)};
  }

  void split(Block& block, size_t bytes) {
    if (block.bytes - bytes < least_kept) return;
    auto* rest = new Block{block.begin + bytes, block.bytes - bytes, false, &block, block.behind, {}};
    if (rest->behind) rest->behind->before = rest;
    block.behind = rest;
    block.bytes = bytes;
    dead_.insert(rest);
  }

  void give_back(Block& block) {
    std::lock_guard lock(mutex_);
    alive_ -= block.bytes;
    block.alive = false;
    Block* whole = &block;
    if (block.behind && !block.behind->alive) join(*whole, *block.behind);
    if (block.before && !block.before->alive) {
      whole = block.before;
      dead_.erase(whole);
      join(*whole, block);
    }
    dead_.insert(whole);
    const size_t alive = std::max(most_alive_, most_alive_before_);
    const size_t most = alive + std::max(alive / 4, 2 * region_step);
    if (held_ > most) release_beyond(most);
  }

  /// `behind` is no block any more.
  void join(Block& before, Block& behind) {
    dead_.erase(&behind);
    before.bytes += behind.bytes;
    before.behind = behind.behind;
    if (before.behind) before.behind->before = &before;
    delete &behind;
  }

  /// Gives regions back that no tensor has memory in, large ones first, until so much is held.
  void release_beyond(size_t bytes) {
    for (auto block = dead_.end(); block != dead_.begin() && held_ > bytes;) {
      Block* last = *--block;
      if (last->before || last->behind) continue;
      held_ -= last->bytes;
      block = dead_.erase(block);
      delete last;
    }
  }

  void count_taken(size_t bytes) {
    // What was alive long ago says nothing of the next step.
    constexpr uint64_t a_while = 10000;
    if (++taken_ % a_while == 0) most_alive_before_ = std::exchange(most_alive_, alive_);
    alive_ += bytes;
    most_alive_ = std::max(most_alive_, alive_);
  }

  std::mutex mutex_;
  std::set<Block*, BySize> dead_;
  size_t held_ = 0, alive_ = 0;  ///< bytes of all regions, and of tensors in them
  size_t most_alive_ = 0, most_alive_before_ = 0;
  uint64_t taken_ = 0;
};

}  // namespace

at::Tensor make_from_kept(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype) {
  const size_t bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  if (bytes < least_kept || !is_kept) return at::detail::empty_strided_cpu(sizes, strides, dtype);
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, KeptMemory::instance().take(bytes), c10::GetCPUAllocator(),
      /*resizable=*/true);
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(dtype));
  made.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return made;
}

size_t held_bytes() { return KeptMemory::instance().held(); }
void release_kept_memory() { KeptMemory::instance().release(); }

KeepNoMemory::KeepNoMemory() : before_(is_kept.exchange(false)) {}
KeepNoMemory::~KeepNoMemory() { is_kept = before_; }

}  // namespace tandem
