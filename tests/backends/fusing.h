/// Functions compiled by the backend `fuse`, and what it makes of them.
#pragma once

#include <gtest/gtest.h>
#include <tandem/tandem.h>
#include <torch/torch.h>

#include "backends/fused_graph.h"
#include "fuzz/tolerance.h"

namespace tandem {

inline Compiled fused(const Callable& function) {
  Options options;
  options.backend = "fuse";
  options.cache.enabled = options.watched_calls = false;
  return Compiled(function, options);
}

/// The kernels that an inference makes, and what is left to libtorch.
inline FusedGraph inference_of(const Callable& function, const Tensors& inputs) {
  const at::NoGradGuard no_grad;
  return fuse(fused(function).explain(inputs).forward, /*threads=*/1);
}

inline size_t launches_of(const FusedGraph& graph) {
  size_t count = 0;
  for (const loops::Fused& group : graph.groups) count += group.launches.size();
  return count;
}

/// That so many launches of one group are all that is left.
inline void expect_launches(size_t count, const Callable& function, const Tensors& inputs) {
  const FusedGraph graph = inference_of(function, inputs);
  EXPECT_EQ(launches_of(graph), count) << to_string(graph);
  EXPECT_EQ(graph.graph.nodes().size(), 1u) << to_string(graph);
}

inline void expect_one_kernel(const Callable& function, const Tensors& inputs) {
  expect_launches(1, function, inputs);
}

/// Results and gradients with and without machine code; both are given the same tensors.
inline void expect_near_eager(const Callable& function, const std::function<Tensors()>& make) {
  torch::manual_seed(3);
  const Tensors mine = make();
  torch::manual_seed(3);
  const Tensors eagers = make();
  const Compiled compiled = fused(function);
  const Tensors got = compiled(mine), want = function(eagers);
  ASSERT_EQ(got.size(), want.size());
  auto expect_near = [](const at::Tensor& a, const at::Tensor& b, const std::string& what) {
    ASSERT_EQ(a.defined(), b.defined()) << what;
    if (!b.defined()) return;
    EXPECT_EQ(a.sizes(), b.sizes()) << what;
    EXPECT_EQ(a.strides(), b.strides()) << what;
    EXPECT_EQ(a.requires_grad(), b.requires_grad()) << what;
    EXPECT_TRUE(fuzz::is_near(b.detach(), a.detach())) << what << "\n" << a << "\ninstead of\n" << b;
  };
  for (size_t k = 0; k < want.size(); ++k) expect_near(got[k], want[k], "result " + std::to_string(k));
  for (size_t k = 0; k < mine.size(); ++k) expect_near(mine[k], eagers[k], "input " + std::to_string(k));
  for (size_t k = 0; k < want.size(); ++k)
    if (want[k].requires_grad()) want[k].sum().backward({}, true), got[k].sum().backward({}, true);
  for (size_t k = 0; k < mine.size(); ++k)
    if (eagers[k].is_leaf())
      expect_near(mine[k].grad(), eagers[k].grad(), "gradient of input " + std::to_string(k));
}

}  // namespace tandem
