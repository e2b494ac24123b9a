#include "memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <atomic>

namespace tandem::cli {

namespace {

std::atomic<int64_t> live{0}, highest{0};

void count(int64_t bytes) {
  const int64_t now = live += bytes;
  int64_t before = highest;
  while (now > before && !highest.compare_exchange_weak(before, now)) {
  }
}

/// Counts what passes through another CPU allocator. What it hands out may outlive its time as the process's
/// allocator: a block remembers its own size and deleter, in front of the bytes that the tensor sees and as
/// far away as keeps them aligned.
class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* inner) : inner_(inner) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return inner_->allocate(0);
    c10::DataPtr whole = inner_->allocate(bytes + front);
    auto* block = static_cast<char*>(whole.get());
    *reinterpret_cast<Block*>(block) = {static_cast<int64_t>(bytes), whole.get_deleter()};
    whole.release_context();
    count(bytes);
    return {block + front, block + front, &release, c10::Device(c10::kCPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  struct Block {
    int64_t bytes;
    c10::DeleterFnPtr deleter;
  };
  static constexpr size_t front = 64;

  static void release(void* data) {
    if (!data) return;
    char* block = static_cast<char*>(data) - front;
    const Block header = *reinterpret_cast<Block*>(block);
    count(-header.bytes);
    header.deleter(block);
  }

  c10::Allocator* inner_;
};

int64_t peak_on_cpu(const std::function<void()>& work) {
  // an allocator set with less would be ignored while another one is in place
  constexpr uint8_t priority = 255;
  c10::Allocator* usual = c10::GetCPUAllocator();
  static CountingAllocator counting(usual);
  const int64_t start = live;
  highest = start;
  c10::SetCPUAllocator(&counting, priority);
  try {
    work();
  } catch (...) {
    c10::SetCPUAllocator(usual, priority);
    throw;
  }
  c10::SetCPUAllocator(usual, priority);
  return highest - start;
}

int64_t peak_on_accelerator(c10::Device device, const std::function<void()>& work) {
  c10::DeviceAllocator* allocator = c10::getDeviceAllocator(device.type());
  const c10::DeviceIndex index = device.has_index() ? device.index() : 0;
  constexpr auto aggregate = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  allocator->resetPeakStats(index);
  const int64_t start = allocator->getDeviceStats(index).allocated_bytes[aggregate].current;
  work();
  return allocator->getDeviceStats(index).allocated_bytes[aggregate].peak - start;
}

}  // namespace

int64_t peak_bytes(c10::Device device, const std::function<void()>& work) {
  return device.is_cpu() ? peak_on_cpu(work) : peak_on_accelerator(device, work);
}

}  // namespace tandem::cli
