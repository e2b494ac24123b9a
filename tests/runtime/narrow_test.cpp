// Less is kept of a value of which the backward reads less: signs for relu, small places for max_pool,
// nothing of what is asked for its sizes alone. No bit of a result differs from eager's.
#include <limits>

#include "support/compare.h"

namespace tandem::test {
namespace {

using Program = std::function<at::Tensor(const Tensors&)>;

Options with_budget(double budget) {
  return {.partitioner = "min_cut", .memory_budget = budget, .must_compile = true};
}

/// Runs and differentiates a program of these inputs, as it is and compiled, and compares; what is kept.
Explanation expect_equal(const Program& program, const Tensors& inputs, const Options& options,
                         bool create_graph = false) {
  auto step = [&](const Tensors& in) { return Tensors{program(in)}; };
  auto compiled = compile(step, options);
  auto run = [&](const auto& function) {
    Tensors given, wanted;
    for (const at::Tensor& input : inputs) {
      given.push_back(input.detach().clone().requires_grad_(input.requires_grad()));
      if (input.requires_grad()) wanted.push_back(given.back());
    }
    const at::Tensor out = function(given)[0];
    const at::Tensor tangent = torch::linspace(-1, 1, out.numel()).view(out.sizes());
    Tensors results{out};
    Tensors first = torch::autograd::grad({out}, wanted, {tangent}, create_graph, create_graph);
    results.insert(results.end(), first.begin(), first.end());
    if (create_graph) {
      at::Tensor sum = torch::zeros({});
      for (const at::Tensor& gradient : first) sum = sum + gradient.square().sum();
      for (at::Tensor& second : torch::autograd::grad({sum}, wanted, {}, true, false, true))
        results.push_back(second);
    }
    return results;
  };
  const Tensors want = run(step), got = run(compiled);
  EXPECT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(same_values(got[i], want[i])) << i;
  return compiled.explain(inputs);
}

size_t calls_of(const Graph& graph, const std::string& name) {
  size_t count = 0;
  for (const Node& node : graph.nodes()) count += node.op.operator_name().name == name;
  return count;
}

at::Tensor with_odd_numbers(at::Tensor x) {
  constexpr double odd[] = {0.0,
                            -0.0,
                            std::numeric_limits<double>::infinity(),
                            -std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN(),
                            1e-45,
                            -1e-45};
  for (int64_t i = 0; i < 7; ++i) x.view(-1)[i] = odd[i];
  return x;
}

/// The result of relu is read for its sign alone.
at::Tensor relu_of_product(const Tensors& in) { return (in[0] * in[1]).relu().sum(0); }

}  // namespace

TEST(Narrow, SignsAreKeptOfARelu) {
  const Tensors inputs{with_odd_numbers(torch::randn({16, 8})).requires_grad_(), torch::ones({16, 8})};
  const Explanation whole = expect_equal(relu_of_product, inputs, with_budget(1)),
                    narrow = expect_equal(relu_of_product, inputs, with_budget(0.99));
  EXPECT_EQ(calls_of(whole.backward, "aten::threshold_backward"), 1u);
  EXPECT_EQ(whole.saved_bytes, 16 * 8 * 4);
  EXPECT_EQ(narrow.saved_bytes, 16 * 8);
  EXPECT_EQ(calls_of(narrow.forward, "aten::le"), 1u);
  EXPECT_EQ(calls_of(narrow.backward, "aten::threshold_backward"), 0u);
}

TEST(Narrow, SignsOfOtherLayoutsAndTypesAreEagersToo) {
  const at::Tensor x = with_odd_numbers(torch::randn({4, 4, 4, 4})), one = torch::ones_like(x);
  for (const at::Tensor& laid : {x, x.transpose(1, 3), x.contiguous(at::MemoryFormat::ChannelsLast),
                                 x.to(at::kDouble), x.to(at::kBFloat16), x.to(at::kHalf)}) {
    auto product = [](const Tensors& in) { return in[0].mul(in[1]).relu().mul(3).to(at::kFloat); };
    expect_equal(product, {laid.clone().requires_grad_(), torch::ones_like(laid)}, with_budget(0.99));
  }
}

TEST(Narrow, NothingIsAddedWhereTheValueIsKeptAnyway) {
  auto mlp = [](const Tensors& in) { return in[0].mm(in[1]).relu().mm(in[2]).relu().mm(in[3]); };
  Tensors inputs{torch::randn({32, 8}), torch::randn({8, 8}), torch::randn({8, 8}), torch::randn({8, 8})};
  for (size_t i = 1; i < inputs.size(); ++i) inputs[i].requires_grad_();
  const Explanation whole = expect_equal(mlp, inputs, with_budget(1)),
                    narrow = expect_equal(mlp, inputs, with_budget(0.99));
  EXPECT_EQ(calls_of(narrow.backward, "aten::where"), 0u) << narrow.backward.to_string();
  EXPECT_LE(narrow.saved_bytes, whole.saved_bytes);
  for (double budget : {0.0, 0.3, 0.6}) expect_equal(mlp, inputs, with_budget(budget));
}

TEST(Narrow, WhatTheCallerGetsIsReadWhereItIs) {
  auto returns_it = [](const Tensors& in) {
    const at::Tensor y = (in[0] * in[1]).relu();
    return Tensors{y.sum(), y};
  };
  auto compiled = compile(Callable(returns_it), with_budget(0.5));
  const Tensors out = compiled({torch::randn({8}).requires_grad_(), torch::ones({8})});
  out[1].detach().add_(1);
  EXPECT_THROW(out[0].backward(), c10::Error);
}

TEST(Narrow, APartitionerOfTheUsersHasFormsWhereItAsksForThem) {
  auto forms_in_joint = [](bool asks) {
    size_t forms = 0;
    Options options = with_budget(0.5);
    options.partition_fn = Partitioner([&forms](const Joint& joint, const PartitionContext& context) {
      forms = calls_of(joint.graph, "aten::le");
      return partition_min_cut(joint, context);
    });
    options.partition_fn.takes_narrow_forms = asks;
    auto program = [](const Tensors& in) { return (in[0] * in[1]).relu().sin(); };
    expect_equal(program, {torch::randn({64, 64}).requires_grad_(), torch::rand({64, 64})}, options);
    return forms;
  };
  EXPECT_EQ(forms_in_joint(true), 1u);
  EXPECT_EQ(forms_in_joint(false), 0u);
}

TEST(Narrow, PlacesOfMaxPoolAreKeptInASmallType) {
  for (int64_t size : {8, 40, 200}) {
    auto pooled = [](const Tensors& in) { return at::max_pool2d((in[0] * in[1]).cos(), 2); };
    const at::Tensor x = torch::randn({1, 2, size, size});
    const Tensors inputs{x.clone().requires_grad_(), torch::ones_like(x)};
    const Explanation whole = expect_equal(pooled, inputs, with_budget(1)),
                      narrow = expect_equal(pooled, inputs, with_budget(0.99));
    const int64_t places = x.numel() / 4, bytes = size == 8 ? 1 : size == 40 ? 2 : 4;
    EXPECT_EQ(whole.saved_bytes - narrow.saved_bytes, places * (8 - bytes) + x.numel() * 4)
        << "and the input of the pool, which is asked for its sizes alone";
  }
}

TEST(Narrow, AReluBeforeAPoolKeepsSignsAndPlaces) {
  auto block = [](const Tensors& in) { return at::max_pool2d((in[0] * in[1]).relu(), 2).mul(2); };
  const at::Tensor x = with_odd_numbers(torch::randn({2, 3, 12, 12}));
  for (const at::Tensor& laid : {x, x.contiguous(at::MemoryFormat::ChannelsLast)}) {
    const Tensors inputs{laid.clone().requires_grad_(), torch::ones_like(laid)};
    const Explanation narrow = expect_equal(block, inputs, with_budget(0.99));
    EXPECT_EQ(narrow.saved_bytes, x.numel() + x.numel() / 4);
    expect_equal(block, inputs, with_budget(0));
  }
}

TEST(Narrow, OtherPoolsAreAskedForSizesAlone) {
  const at::Tensor x = torch::randn({2, 3, 12, 12});
  const Tensors inputs{x.clone().requires_grad_(), torch::ones_like(x)};
  const Program programs[] = {
      [](const Tensors& in) { return at::avg_pool2d((in[0] * in[1]).neg(), 2); },
      [](const Tensors& in) { return at::adaptive_avg_pool2d((in[0] * in[1]).neg(), {3, 4}); },
      [](const Tensors& in) { return std::get<0>(at::adaptive_max_pool2d((in[0] * in[1]).neg(), {3, 4})); },
      [](const Tensors& in) { return at::max_pool3d((in[0] * in[1]).neg(), 2); },
      [](const Tensors& in) { return at::avg_pool3d((in[0] * in[1]).neg(), 2); }};
  for (const Program& program : programs) {
    const Explanation whole = expect_equal(program, inputs, with_budget(1)),
                      narrow = expect_equal(program, inputs, with_budget(0.99));
    EXPECT_GE(whole.saved_bytes - narrow.saved_bytes, x.numel() * 4);
  }
}

TEST(Narrow, HigherOrdersReadWhatWasKept) {
  auto smooth = [](const Tensors& in) { return (in[0] * in[1]).relu().mul(in[0]); };
  auto pooled = [](const Tensors& in) { return at::max_pool2d((in[0] * in[1]).relu(), 2).square(); };
  const at::Tensor x = torch::randn({1, 2, 8, 8});
  for (const Program& program : {Program(relu_of_product), Program(smooth), Program(pooled)})
    for (double budget : {0.99, 0.5, 0.0})
      for (bool both : {false, true})
        expect_equal(program, {x.clone().requires_grad_(), torch::randn_like(x).requires_grad_(both)},
                     with_budget(budget), /*create_graph=*/true);
}

TEST(Narrow, HigherOrdersFindWhatTheForwardComputedBySuchReaders) {
  auto own_gradient = [](const Tensors& in) {
    const at::Tensor relu = (in[0] * in[1]).relu(), zeros = at::zeros_like(relu);
    const at::Tensor inside = at::threshold_backward(relu.cos(), relu, 0);
    return (inside.exp() + zeros).mul(relu).mul(in[0]).relu();
  };
  const at::Tensor x = torch::randn({8, 8});
  for (double budget : {0.99, 0.5, 0.0})
    expect_equal(own_gradient, {x.clone().requires_grad_(), torch::randn_like(x)}, with_budget(budget),
                 /*create_graph=*/true);
}

TEST(Narrow, HigherOrdersInAnotherLayoutReadSignsAlone) {
  auto through_view = [](const Tensors& in) {
    return at::add(in[0].slice(1, 0, 4, 2).relu(), in[0], 3).square();
  };
  const Tensors inputs{torch::randn({2, 1}).requires_grad_()};
  for (double budget : {0.99, 0.5}) expect_equal(through_view, inputs, with_budget(budget), true);
}

TEST(Narrow, AGradientOfAnotherLayoutReadsWhatWasKept) {
  auto branches = [](const Tensors& in) {
    const at::Tensor y = (in[0] * in[1]).relu();
    return Tensors{y.mul(2), at::max_pool2d(y.mul(3).relu(), 2)};
  };
  auto compiled = compile(Callable(branches), with_budget(0.99));
  const at::Tensor x = torch::randn({2, 2, 4, 4}), y = torch::ones_like(x);
  auto gradients = [&](const auto& function, int which) {
    const at::Tensor leaf = x.clone().requires_grad_();
    const Tensors out = function(Tensors{leaf, y});
    if (which == 0) out[0].sum().backward();
    if (which == 1) out[1].backward(torch::randn({2, 2, 2, 2}).transpose(2, 3).fill_(3));
    if (which == 2)
      torch::autograd::backward({out[0], out[1]}, {torch::ones_like(out[0]), torch::ones_like(out[1])});
    return leaf.grad();
  };
  for (int which : {0, 1, 2})
    EXPECT_TRUE(same_values(gradients(compiled, which), gradients(branches, which)));
}

}  // namespace tandem::test
