// What the backend `fuse` puts into one kernel, when it compiles one, and that eager's surroundings hold.
#include <tandem/build.h>

#include "backends/fusing.h"
#include "backends/registry.h"
#include "native/code.h"
#include "support/compare.h"

namespace tandem {
namespace {

using test::counter;

Tensors chain(const Tensors& in) { return {at::tanh(at::exp(-in[0] * in[0]) + 1) * at::sigmoid(in[0])}; }

TEST(Fuse, AChainIsOneKernel) { expect_one_kernel(chain, {at::randn({64, 100})}); }

TEST(Fuse, SoftmaxIsOneKernel) {
  expect_one_kernel([](const Tensors& in) { return Tensors{at::softmax(in[0], -1)}; },
                    {at::randn({64, 100})});
}

TEST(Fuse, LayerNormIsOneKernel) {
  expect_one_kernel([](const Tensors& in) { return Tensors{at::layer_norm(in[0], {100}, in[1], in[2])}; },
                    {at::randn({64, 100}), at::randn({100}), at::randn({100})});
}

TEST(Fuse, WhatABackwardComputesAgainAndReadsBesidesIsComputedOnce) {
  const auto step = [](const Tensors& in) { return Tensors{at::gelu(at::exp(in[0])).square().sum()}; };
  const Graph backward = fused(step).explain({at::randn({64, 100}).requires_grad_()}).backward;
  const FusedGraph graph = fuse(backward, /*threads=*/1);
  ASSERT_EQ(launches_of(graph), 1u) << to_string(graph);
  const auto& exprs = graph.groups[0].launches[0].kernel.exprs;
  const auto is_erf = [](const loops::Expr& expr) { return expr.op == loops::Op::Erf; };
  EXPECT_EQ(std::count_if(exprs.begin(), exprs.end(), is_erf), 1) << to_string(graph);
}

/// One product, and what comes behind it.
Tensors layer(const Tensors& in) { return {at::gelu(at::linear(in[0], in[1], in[2])).sum()}; }
Tensors leaves_of_layer() {
  return {at::randn({8, 6}).requires_grad_(), at::randn({4, 6}).requires_grad_(),
          at::randn({4}).requires_grad_()};
}

void expect_calls_of_layer() {
  const Explanation found = fused(layer).explain(leaves_of_layer());
  EXPECT_EQ(found.calls(Stage::Forward).library_calls, 1u) << "of linear; views are no calls";
  EXPECT_GE(found.calls(Stage::Forward).kernels, 1u);
  EXPECT_EQ(found.calls(Stage::Backward).library_calls, 2u) << "one product for each factor";
  EXPECT_GE(found.calls(Stage::Backward).kernels, 1u);
  EXPECT_EQ(found.calls(Stage::Inference).kernels + found.calls(Stage::Inference).library_calls, 0u);
  for (const KernelInfo& kernel : found.kernels) {
    EXPECT_EQ(kernel.name.starts_with(kernel.is_generated ? "tandem_" : "aten::"), true) << kernel.name;
    const std::string graph = (kernel.stage == Stage::Forward ? found.forward : found.backward).to_string();
    EXPECT_GT(kernel.nodes.size(), 0u) << kernel.name;
    for (const std::string& node : kernel.nodes) EXPECT_NE(graph.find(node), std::string::npos) << node;
  }
}

TEST(Fuse, ExplainsWhichKernelsAStepCallsAndWhatIsLeftToLibtorch) {
  if (!native::can_compile()) GTEST_SKIP() << "there is no LLVM";
  const int threads = at::get_num_threads();
  expect_calls_of_layer();
  at::set_num_threads(2);  // products may run side by side
  expect_calls_of_layer();
  at::set_num_threads(threads);
}

TEST(Fuse, OtherBackendsSayWhatTheyCallToo) {
  for (const char* backend : {"eager", "debug"}) {
    const Explanation found = Compiled(layer, {.backend = backend}).explain(leaves_of_layer());
    EXPECT_EQ(found.calls(Stage::Forward).kernels, 0u);
    EXPECT_EQ(found.calls(Stage::Forward).library_calls, 3u) << "linear, gelu and sum";
    EXPECT_GT(found.calls(Stage::Backward).library_calls, 3u);
  }
  const Compiler own = [](const Graph& graph, const CompileContext&) {
    return boxed([graph](Tensors&& in) { return graph.run(std::move(in)); });
  };
  EXPECT_EQ(Compiled(layer, {.fw_compiler = own}).explain(leaves_of_layer()).kernels.size(), 0u);
}

Graph exponential_on(c10::Device device) {
  Graph graph;
  Builder build(graph);
  graph.set_outputs({build.call("aten::exp", {build.input({2, 3}, at::kFloat, device)})});
  return graph;
}

TEST(Fuse, SaysOnceThatLibtorchRunsEverythingOnOtherDevices) {
  const auto backend = make_fuse_backend();
  auto said_on = [&](c10::Device device) {
    CompileContext context;
    context.device = device;
    testing::internal::CaptureStderr();
    const Graph graph = exponential_on(device);
    EXPECT_EQ(backend->compile(graph, context)->kernels(graph).size(), 1u);
    return testing::internal::GetCapturedStderr();
  };
  if (native::can_compile()) {
    EXPECT_EQ(said_on(at::kCPU), "");
  }
  const std::string said = said_on(at::Device(at::kCUDA, 0));
  EXPECT_TRUE(test::contains(said, "on cuda everything runs through libtorch")) << said;
  EXPECT_EQ(said_on(at::Device(at::kCUDA, 0)), "");
}

TEST(Fuse, AnotherBatchSizeCompilesNoKernel) {
  if (!native::can_compile()) GTEST_SKIP() << "there is no LLVM";
  const Compiled compiled = fused(chain);
  compiled({at::randn({64, 100}).requires_grad_()})[0].sum().backward();
  const uint64_t before = counter("kernel_compiled");
  EXPECT_GT(before, 0u);
  compiled({at::randn({48, 100}).requires_grad_()})[0].sum().backward();
  EXPECT_EQ(counter("kernel_compiled"), before);
}

TEST(Fuse, WritesViewsAndEmptyTensorsAreEagers) {
  if (!native::can_compile()) GTEST_SKIP() << "there is no LLVM";
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{4, 6}, {}, {0, 3}, {1, 1}}) {
    auto leaf = [&] { return Tensors{at::randn(sizes).requires_grad_()}; };
    auto plain = [&] { return Tensors{at::randn(sizes), at::randn(sizes)}; };
    expect_near_eager(chain, leaf);
    expect_near_eager([](const Tensors& in) { return Tensors{at::sum(in[0] * 2), at::exp(in[0])}; }, leaf);
    expect_near_eager(
        [](const Tensors& in) {
          in[0].mul_(in[1]).add_(1);
          return Tensors{in[0].view({-1}), in[0] * 2};
        },
        plain);
  }
}

TEST(Fuse, InputsMayBeViewsOrExpanded) {
  if (!native::can_compile()) GTEST_SKIP() << "there is no LLVM";
  expect_near_eager(chain, [] { return Tensors{at::randn({8, 6}).t()}; });
  expect_near_eager(chain, [] { return Tensors{at::randn({8, 6}).slice(1, 1, 6, 2)}; });
  expect_near_eager(chain, [] { return Tensors{at::randn({6}).expand({8, 6})}; });
  expect_near_eager([](const Tensors& in) { return Tensors{at::exp(in[0] + in[1])}; },
                    [] {
                      const at::Tensor whole = at::randn({4, 8});
                      return Tensors{whole.slice(1, 0, 4), whole.slice(1, 4, 8)};
                    });
}

TEST(Fuse, OtherStridesOfAGradientAreRead) {
  if (!native::can_compile()) GTEST_SKIP() << "there is no LLVM";
  const at::Tensor mine = at::randn({8, 6}).requires_grad_(), eagers = mine.detach().clone().requires_grad_();
  const at::Tensor got = fused(chain)({mine})[0], want = chain({eagers})[0];
  for (const at::Tensor& tangent : {at::randn({8, 6}), at::randn({6, 8}).t(), at::randn({}).expand({8, 6})}) {
    const auto asked = torch::autograd::grad({got}, {mine}, {tangent}, /*retain_graph=*/true);
    const auto wanted = torch::autograd::grad({want}, {eagers}, {tangent}, /*retain_graph=*/true);
    EXPECT_TRUE(fuzz::is_near(wanted[0], asked[0])) << asked[0] << "\ninstead of\n" << wanted[0];
  }
}

TEST(Fuse, NumbersThatTheGraphHoldsAsTensorsAreNumbers) {
  if (!native::can_compile()) GTEST_SKIP() << "there is no LLVM";
  // As Python's are.
  const auto number = [](double value) {
    at::Tensor held = at::scalar_tensor(value, at::kDouble);
    held.unsafeGetTensorImpl()->set_wrapped_number(true);
    return held;
  };
  expect_near_eager(
      [&](const Tensors& in) {
        return Tensors{at::mul(in[0], number(0.3)) + number(1), at::where(in[0] > 0, in[0], number(2))};
      },
      [] { return Tensors{at::randn({4, 6}).requires_grad_()}; });
}

TEST(Fuse, OtherDtypesRunThroughLibtorch) {
  for (at::ScalarType dtype : {at::kBFloat16, at::kHalf, at::kComplexFloat}) {
    const Tensors inputs = {at::randn({4, 6}).to(dtype)};
    const Callable product = [](const Tensors& in) { return Tensors{in[0] * in[0] + in[0]}; };
    EXPECT_EQ(inference_of(product, inputs).groups.size(), 0u);
    EXPECT_TRUE(test::same_values(fused(product)(inputs)[0], product(inputs)[0]));
  }
}

}  // namespace
}  // namespace tandem
