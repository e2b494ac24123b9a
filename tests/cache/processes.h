/// What several processes do one after the other on one cache, played by one process that forgets in between.
#pragma once

#include <gtest/gtest.h>
#include <tandem/tandem.h>
#include <torch/torch.h>

#include "cache/local_store.h"
#include "cache/scratch_folder.h"

namespace tandem::test {

inline uint64_t counter(const std::string& name) { return counters().at(name); }

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The sentence that `call` throws as E; empty when it throws nothing.
template <class E = CacheError, class Call>
std::string message(const Call& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

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

inline void expect_equal(const Tensors& got, const Tensors& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(torch::equal(got[i], want[i])) << i << ": " << got[i] << " instead of " << want[i];
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
    std::vector<std::filesystem::path> found;
    if (std::filesystem::exists(directory() / kind))
      for (const auto& file : std::filesystem::recursive_directory_iterator(directory() / kind))
        if (file.is_regular_file()) found.push_back(file.path());
    return found;
  }
  cache::LocalTotals stats() const { return cache::LocalStore(directory(), "", 1 << 30).stats(); }

  ScratchFolder folder;
};

#define EXPECT_COUNTERS(hits, misses, saved)       \
  do {                                             \
    EXPECT_EQ(counter("cache_hit"), hits);         \
    EXPECT_EQ(counter("cache_miss"), misses);      \
    EXPECT_EQ(counter("cache_saved"), saved);      \
  } while (false)

/// A hit traces the program and does nothing else that a compile does.
inline void expect_only_traced() {
  EXPECT_EQ(counter("trace"), 1u);
  for (const char* work : {"joint_trace", "partition", "compile_forward", "compile_backward", "compile_inference", "compile_higher_order", "backward_variant"}) EXPECT_EQ(counter(work), 0u) << work;
}

}  // namespace tandem::test
