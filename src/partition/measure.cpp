#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/record_function.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <tandem/error.h>

#include <chrono>

#include "ops/facts.h"
#include "partition/rates.h"

namespace tandem {
namespace {

/// In seconds: how long a timing is at least, and how long several of them take.
constexpr double shortest_on_cpu = 2e-5, shortest_elsewhere = 2e-4, longest = 2e-3;
/// Others may be busy on the machine, for some milliseconds at a time: each rate is the best of as many.
constexpr int rounds = 3;
constexpr int64_t of_one_thread = 1024;  ///< elements that libtorch does not divide
constexpr double busy = 2.5e-4;          ///< a device with a product that takes so many seconds
constexpr int64_t smallest_product = 256, largest_product = 2048;

class Meter {
 public:
  explicit Meter(c10::Device device)
      : device_(device),
        large_(ones({3, device.is_cpu() ? 1 << 21 : 1 << 23})),
        small_(ones({2, device.is_cpu() ? at::internal::GRAIN_SIZE * at::get_num_threads() : 1 << 22})) {}

  Rates run() const {
    if (is_disturbed()) throw Error("others keep the processors busy");
    Rates best{1, 0, 0, 0, 0};
    for (int i = 0; i < rounds; ++i) {
      best.call_seconds = std::min(best.call_seconds, seconds_of_call());
      best.bytes = std::max(best.bytes, bytes());
      best.elements = std::max(best.elements, elements(small_));
      best.flops = std::max(best.flops, flops(at::kFloat));
      best.narrow_flops = std::max(best.narrow_flops, flops(at::kBFloat16));
    }
    return best;
  }

 private:
  at::Tensor ones(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) const {
    return at::ones(sizes, at::TensorOptions(device_).dtype(dtype));
  }

  void wait() const {
    if (!device_.is_cpu()) c10::impl::VirtualGuardImpl(device_.type()).getStream(device_).synchronize();
  }

  template <class Run>
  double seconds_of(int count, const Run& run) const {
    wait();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) run();
    wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  /// Of one run, the least of several timings.
  template <class Run>
  double seconds(const Run& run) const {
    run();
    int count = 1;
    double took = seconds_of(count, run), all = took;
    const double shortest = device_.is_cpu() ? shortest_on_cpu : shortest_elsewhere;
    for (; took < shortest; all += took) took = seconds_of(count *= 2, run);
    double least = took;
    for (; all < longest; all += took) least = std::min(least, took = seconds_of(count, run));
    return least / count;
  }

  /// Whether libtorch's threads together are slower than one alone: somebody else has their processors.
  bool is_disturbed() const {
    return device_.is_cpu() && at::get_num_threads() > 1 &&
           elements(small_) < elements(small_.slice(1, 0, of_one_thread));
  }

  double seconds_of_call() const {
    const at::Tensor one = ones({1});
    return seconds([&] { at::add(one, one); });
  }

  /// What memory gives, beyond most of the caches.
  double bytes() const {
    at::Tensor sum = large_[0];
    return double(large_.nbytes()) / seconds([&, a = large_[1], b = large_[2]] { at::add_out(sum, a, b); });
  }

  /// What arithmetic takes, within the caches, on as many threads as libtorch divides it between.
  double elements(const at::Tensor& room) const {
    static const int additions = cost_of("aten::exp") + cost_of("aten::tanh") + cost_of("aten::erf");
    at::Tensor result = room[0];
    return additions * double(result.numel()) / seconds([&, x = room[1]] {
             at::exp_out(result, x);
             at::tanh_out(result, x);
             at::erf_out(result, x);
           });
  }

  static int cost_of(const char* op) {
    return facts(c10::Dispatcher::singleton().findSchemaOrThrow(op, "")).cost;
  }

  /// Of products that are large enough to keep the device busy.
  double flops(at::ScalarType dtype) const {
    double best = 0, took = 0;
    for (int64_t size = smallest_product; size <= largest_product && took < busy; size *= 2) {
      const at::Tensor a = ones({size, size}, dtype);
      at::Tensor product = at::empty_like(a);
      took = seconds([&] { at::mm_out(product, a, a); });
      best = std::max(best, 2.0 * double(size) * double(size) * double(size) / took);
    }
    return best;
  }

  const c10::Device device_;
  const at::Tensor large_, small_;
};

}  // namespace

Rates measure_rates(c10::Device device) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::DisableRecordFunctionGuard unprofiled;
  return *rates_of_words(to_words(Meter(device).run()));
}

}  // namespace tandem
