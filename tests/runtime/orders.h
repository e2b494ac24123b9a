/// What gradients of gradients are compared by: every order in float64, since sums are associated anew at
/// each call.
#pragma once

#include "runtime/compare.h"

namespace tandem::test::higher {

inline const at::TensorOptions f64 = at::kDouble;

inline at::Tensor double_leaf(at::IntArrayRef sizes) { return torch::randn(sizes, f64).requires_grad_(); }

inline void expect_close(const at::Tensor& got, const at::Tensor& want, const std::string& what) {
  ASSERT_EQ(got.defined(), want.defined()) << what;
  if (!want.defined()) return;
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  EXPECT_EQ(got.requires_grad(), want.requires_grad()) << what;
  at::NoGradGuard no_grad;
  double scale = std::max(want.abs().max().item<double>(), 1e-3);
  EXPECT_LE((got - want).abs().max().item<double>() / scale, 1e-10) << what;
}

inline Tensors grad(const at::Tensor& loss, const Tensors& leaves, bool create_graph = true) {
  return torch::autograd::grad({loss}, leaves, {}, /*retain_graph=*/true, create_graph,
                               /*allow_unused=*/true);
}

/// A scalar that every one of these counts in; where they are gradients, `bend` makes the tangents that reach
/// their node require grad.
inline at::Tensor fold(const Tensors& tensors, bool bend) {
  at::Tensor sum = torch::zeros({}, f64);
  double weight = 1;
  for (const at::Tensor& t : tensors) {
    if (!t.defined() || !t.requires_grad()) continue;
    sum = sum + (bend ? (t * weight).sin() + t * t
                      : t * torch::linspace(0.5, 1.5, t.numel(), f64).view(t.sizes()) * weight)
                    .sum();
    weight += 0.5;
  }
  return sum;
}

/// All gradients of orders 1 to `highest`, each order's loss made of the gradients of the one below.
inline Tensors orders(const Callable& fn, const Tensors& leaves, int highest, bool bend) {
  Tensors all;
  at::Tensor loss = fold(fn(leaves), bend);
  for (int order = 1; order <= highest && loss.requires_grad(); ++order) {
    Tensors gradients = grad(loss, leaves, order < highest);
    all.insert(all.end(), gradients.begin(), gradients.end());
    loss = fold(gradients, bend);
  }
  return all;
}

using Use = std::function<Tensors(const Callable& fn, const Tensors& leaves)>;

/// What `use` gives of `fn` as it is and compiled, on equal leaves and random numbers; a second time nothing
/// is compiled.
inline void expect_same(const Callable& fn, const std::vector<std::vector<int64_t>>& sizes, const Use& use,
                        const Options& options = {}) {
  for (const char* backend : {"eager", "debug"}) {
    SCOPED_TRACE(backend);
    Options with = options;
    with.backend = backend;
    Compiled compiled(fn, with);
    uint64_t before = counter("compile_higher_order"), after = 0;
    for (uint64_t seed : {1, 2}) {
      auto run = [&](const Callable& function) {
        torch::manual_seed(seed);
        Tensors leaves;
        for (const auto& size : sizes) leaves.push_back(double_leaf(size));
        return use(function, leaves);
      };
      Tensors want = run(fn), got = run([&](const Tensors& in) { return compiled(in); });
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) expect_close(got[i], want[i], "tensor " + std::to_string(i));
      if (seed == 1) after = counter("compile_higher_order");
    }
    EXPECT_GT(after, before) << "not compiled";
    EXPECT_EQ(counter("compile_higher_order"), after);
  }
}

inline void expect_orders(const Callable& fn, const std::vector<std::vector<int64_t>>& sizes, int highest,
                          const Options& options = {}) {
  for (bool bend : {false, true}) {
    SCOPED_TRACE(bend ? "tangents require grad" : "tangents do not require grad");
    expect_same(
        fn, sizes, [&](const Callable& f, const Tensors& leaves) { return orders(f, leaves, highest, bend); },
        options);
  }
}

}  // namespace tandem::test::higher
