// Anomaly mode: on while a function is compiled, while it is called, while it is differentiated.
#include "runtime/compare.h"

#include <torch/csrc/autograd/anomaly_mode.h>

namespace tandem {
namespace {

using test::contains;
using test::leaf;
using test::message;
using test::same_values;
using torch::autograd::DetectAnomalyGuard;

/// The gradient of sqrt at 0, times 0.
Tensors nan_at_zero(const Tensors& in) { return {in[0].sqrt() * 0 + in[1]}; }

std::string failure_of(const Callable& fn, bool create_graph = false) {
  at::Tensor a = torch::zeros(3).requires_grad_(), b = leaf({3});
  at::Tensor y = fn({a, b})[0].sum();
  return message([&] { torch::autograd::grad({y}, {a, b}, {}, true, create_graph); });
}

Callable called(const Compiled& fast) {
  return [fast](const Tensors& in) { return fast(in); };
}

TEST(Anomaly, ChangesNothingWhereThereIsNone) {
  const Callable fn = [](const Tensors& in) { return Tensors{(in[0] * in[1]).tanh().sum()}; };
  DetectAnomalyGuard anomaly;
  Compiled fast(fn, {});
  at::Tensor a = leaf({3}), b = leaf({3});
  EXPECT_EQ(fast.explain({a, b}).eager_reason, "");
  Tensors got = torch::autograd::grad(fast({a, b}), {a, b}), want = torch::autograd::grad(fn({a, b}), {a, b});
  EXPECT_TRUE(same_values(got[0], want[0]) && same_values(got[1], want[1]));
}

TEST(Anomaly, OnWhileCompilingGivesTheSameGraphsAsOff) {
  const Callable fn = [](const Tensors& in) {
    at::Tensor force = torch::autograd::grad({(in[0] * in[1]).sin().sum()}, {in[0]}, {}, true, true)[0];
    return Tensors{force * in[1]};
  };
  at::Tensor a = leaf({3}), b = leaf({3});
  auto explained = [&] {
    Explanation e = Compiled(fn, {}).explain({a, b});
    EXPECT_EQ(e.eager_reason, "");
    const auto trace =
        std::find_if(e.key_components.begin(), e.key_components.end(),
                     [](const std::string& component) { return component.starts_with("trace: "); });
    EXPECT_NE(trace, e.key_components.end());
    return *trace + " " + e.joint.hash() + " " + e.forward.hash() + " " + e.backward.hash();
  };
  std::string off = explained();
  DetectAnomalyGuard anomaly;
  EXPECT_EQ(explained(), off);
}

TEST(Anomaly, ReportsNaNAsEagerDoesAndNamesTheOperator) {
  for (bool while_compiling : {true, false}) {
    SCOPED_TRACE(while_compiling ? "on while compiling" : "on while calling");
    Compiled fast(nan_at_zero, {});
    if (!while_compiling) {
      EXPECT_EQ(failure_of(called(fast)), "");
    }
    DetectAnomalyGuard anomaly;
    std::string eager = failure_of(nan_at_zero), ours = failure_of(called(fast));
    EXPECT_TRUE(contains(eager, "returned nan values in its 0th output")) << eager;
    EXPECT_TRUE(contains(ours, "returned nan values in its 0th output")) << ours;
    EXPECT_TRUE(contains(ours, "aten::div")) << ours;
  }
}

TEST(Anomaly, ReportsNaNUnderCreateGraphToo) {
  Compiled fast(nan_at_zero, {});
  DetectAnomalyGuard anomaly;
  std::string ours = failure_of(called(fast), /*create_graph=*/true);
  EXPECT_TRUE(contains(failure_of(nan_at_zero, true), "returned nan values"));
  EXPECT_TRUE(contains(ours, "returned nan values") && contains(ours, "aten::div")) << ours;
}

TEST(Anomaly, NaNThatCameFromOutsideIsNotBlamedOnTheFunctionsOperators) {
  const Callable fn = [](const Tensors& in) { return Tensors{in[0] * 2 + in[1]}; };
  Compiled fast(fn, {});
  DetectAnomalyGuard anomaly;
  auto run = [](const Callable& f) {
    at::Tensor a = leaf({3}), b = leaf({3});
    return message([&] { f({a, b})[0].backward(torch::full(3, NAN)); });
  };
  EXPECT_TRUE(contains(run(fn), "returned nan values"));
  std::string ours = run(called(fast));
  EXPECT_TRUE(contains(ours, "returned nan values")) << ours;
  EXPECT_FALSE(contains(ours, "aten::")) << ours;
}

TEST(Anomaly, WithoutTheCheckForNaN) {
  Compiled fast(nan_at_zero, {});
  DetectAnomalyGuard anomaly(/*check_nan=*/false);
  EXPECT_EQ(failure_of(nan_at_zero), "");
  EXPECT_EQ(failure_of(called(fast)), "");
}

TEST(Anomaly, AWriteSinceIsReportedAsWithout) {
  Compiled fast([](const Tensors& in) { return Tensors{in[0].exp() * in[1]}; }, {});
  DetectAnomalyGuard anomaly;
  at::Tensor a = leaf({3}), b = leaf({3}), y = fast({a, b})[0];
  b.detach().zero_();
  EXPECT_TRUE(contains(message([&] { y.sum().backward(); }), "modified by an inplace operation"));
}

}  // namespace
}  // namespace tandem
