/// Work done by eight threads at once, and the functions that they share.
#pragma once

#include "runtime/compare.h"

#include <atomic>
#include <thread>

namespace tandem::test {

constexpr int thread_count = 8;

/// Runs `work(thread)` on all threads at once and rethrows what one of them threw.
inline void on_all_threads(const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> failures(thread_count);
  std::atomic<int> ready = 0;
  for (int t = 0; t < thread_count; ++t)
    threads.emplace_back([&, t] {
      ++ready;
      while (ready < thread_count) std::this_thread::yield();
      try {
        work(t);
      } catch (...) {
        failures[t] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

inline Tensors wave(const Tensors& in) { return {(in[0] * in[1]).sin().exp()}; }

/// Whether all of these are equal bit for bit.
inline bool same_all(const Tensors& got, const Tensors& want) {
  if (got.size() != want.size()) return false;
  for (size_t i = 0; i < got.size(); ++i)
    if (!same_values(got[i], want[i])) return false;
  return true;
}

/// Whether values and gradients are those of the function itself.
inline bool right(const Callable& fast, const Callable& fn, int64_t size) {
  at::Tensor a = leaf({size}), b = leaf({size});
  at::Tensor got = fast({a, b})[0], want = fn({a, b})[0];
  return same_values(got, want) &&
         same_all(torch::autograd::grad({got.sum()}, {a, b}), torch::autograd::grad({want.sum()}, {a, b}));
}

}  // namespace tandem::test
