/// What several processes do one after the other on one cache, played by one process that forgets in between.
#pragma once

#include "cache/local_store.h"
#include "cache/scratch_folder.h"
#include "support/compare.h"

namespace tandem::test {

inline at::Tensor leaf(std::vector<float> values) { return torch::tensor(values).requires_grad_(); }

/// The outputs, and the gradients of all arguments that have one.
inline Tensors train(const Callable& fn, const Tensors& inputs) {
  Tensors seen, roots, tangents, leaves;
  for (const at::Tensor& out : fn(inputs)) {
    seen.push_back(out.detach());
    if (!out.requires_grad()) continue;
    roots.push_back(out);
    tangents.push_back(torch::ones_like(out));
  }
  for (const at::Tensor& in : inputs)
    if (in.requires_grad()) leaves.push_back(in);
  if (roots.empty()) return seen;
  for (const at::Tensor& gradient : torch::autograd::grad(roots, leaves, tangents)) seen.push_back(gradient);
  return seen;
}

struct Processes : testing::Test {
  void SetUp() override {
    unsetenv("TANDEM_CACHE");
    next_process();
  }
  void TearDown() override { reset(); }

  static void next_process() { reset(); }

  std::filesystem::path directory() const { return folder.path() / "cache"; }
  Options options(Options base = {}) const {
    base.cache.directory = directory();
    return base;
  }
  Options strict(Options base = {}) const {
    base = options(std::move(base));
    base.cache.strict = true;
    return base;
  }

  std::vector<std::filesystem::path> files(const char* kind) const {
    return test::files_below(directory() / kind);
  }
  cache::LocalTotals stats() const { return cache::LocalStore(directory(), "", 1 << 30).stats(); }

  ScratchFolder folder;
};

#define EXPECT_COUNTERS(hits, misses, saved)  \
  do {                                        \
    EXPECT_EQ(counter("cache_hit"), hits);    \
    EXPECT_EQ(counter("cache_miss"), misses); \
    EXPECT_EQ(counter("cache_saved"), saved); \
  } while (false)

/// A hit traces the program and does nothing else that a compile does.
inline void expect_only_traced() {
  EXPECT_EQ(counter("trace"), 1u);
  for (const char* work : {"joint_trace", "partition", "compile_forward", "compile_backward",
                           "compile_inference", "compile_higher_order", "backward_variant"})
    EXPECT_EQ(counter(work), 0u) << work;
}

}  // namespace tandem::test
