// Whole models, compiled, train as they do in eager: the same losses and the same gradients, bit by bit, over
// twenty steps of AdamW.
#include "fuzz/tolerance.h"
#include "models.h"

#include <tandem/tandem.h>

#include <torch/cuda.h>
#include <torch/optim/adamw.h>
#include <torch/utils.h>

#include <gtest/gtest.h>

#include <cstring>

using namespace tandem;
using bench::Benchmark;

namespace {

constexpr int steps = 20;

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor x = a.detach().cpu().contiguous(), y = b.detach().cpu().contiguous();
  return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

/// Trains both copies step by step, the second one compiled, and compares everything that a step leaves
/// behind.
void expect_equal_training(const Benchmark& eager, const Benchmark& twin, const std::string& backend) {
  Compiled compiled = compile([&](const Tensors& in) { return Tensors{twin.loss(in)}; },
                              {.backend = backend, .name = twin.name, .watch = {twin.module}});
  torch::optim::AdamW eager_optimiser(eager.module->parameters(), torch::optim::AdamWOptions(1e-3));
  torch::optim::AdamW twin_optimiser(twin.module->parameters(), torch::optim::AdamWOptions(1e-3));
  for (int step = 0; step < steps; ++step) {
    SCOPED_TRACE(eager.name + ", step " + std::to_string(step));
    eager_optimiser.zero_grad();
    twin_optimiser.zero_grad();
    torch::manual_seed(step);
    at::Tensor expected = eager.loss(eager.inputs);
    expected.backward();
    torch::manual_seed(step);
    at::Tensor found = compiled(twin.inputs)[0];
    found.backward();
    ASSERT_TRUE(std::isfinite(expected.item<double>()));
    ASSERT_TRUE(same_bits(expected, found))
        << expected.item<double>() << " in eager, " << found.item<double>() << " compiled";
    auto expected_parameters = eager.module->named_parameters(),
         found_parameters = twin.module->named_parameters();
    for (const auto& parameter : expected_parameters)
      ASSERT_TRUE(same_bits(parameter.value().grad(), found_parameters[parameter.key()].grad()))
          << "gradient of " << parameter.key();
    auto expected_buffers = eager.module->named_buffers(), found_buffers = twin.module->named_buffers();
    for (const auto& buffer : expected_buffers)
      ASSERT_TRUE(same_bits(buffer.value(), found_buffers[buffer.key()])) << "buffer " << buffer.key();
    eager_optimiser.step();
    twin_optimiser.step();
  }
  EXPECT_TRUE(compiled.explain(twin.inputs).eager_reason.empty()) << "the model was not compiled at all";
}

/// The character model that `tandem train` trains.
Benchmark make_char_gpt(c10::Device device) {
  return bench::make_gpt(
      {.layers = 4, .width = 128, .heads = 4, .vocabulary = 60, .context = 64, .dropout = 0.1}, 16, device,
      /*seed=*/7);
}

Benchmark make(const std::string& name, c10::Device device) {
  return name == "char_gpt" ? make_char_gpt(device) : bench::make_benchmark(name, device, {}, /*seed=*/7);
}

/// The model with random numbers everywhere: what it is given drops out, and so does a penalty on each of its
/// parameters.
Benchmark with_dropout(Benchmark plain) {
  Benchmark dropping = plain;
  dropping.name += " with dropout";
  dropping.loss = [plain](const Tensors& in) {
    Tensors dropped;
    for (const at::Tensor& t : in)
      dropped.push_back(t.is_floating_point() ? torch::dropout(t, 0.2, true) : t);
    at::Tensor loss = plain.loss(dropped);
    for (const at::Tensor& parameter : plain.module->parameters())
      loss = loss + torch::dropout(parameter.tanh(), 0.5, true).square().mean();
    return loss;
  };
  return dropping;
}

class Models : public testing::TestWithParam<std::string> {};

TEST_P(Models, TrainBitEqualToEager) {
  expect_equal_training(make(GetParam(), at::kCPU), make(GetParam(), at::kCPU), "eager");
}

TEST_P(Models, TrainBitEqualToEagerWithDropout) {
  expect_equal_training(with_dropout(make(GetParam(), at::kCPU)), with_dropout(make(GetParam(), at::kCPU)),
                        "eager");
}

at::Tensor in_doubles(const at::Tensor& t) { return t.is_floating_point() ? t.to(at::kDouble) : t; }

/// The loss and the gradients of a step.
Tensors step_of(const Benchmark& model, const std::function<at::Tensor()>& loss) {
  model.module->zero_grad();
  Tensors seen = {loss()};
  seen[0].backward();
  for (const auto& parameter : model.module->named_parameters()) seen.push_back(parameter.value().grad());
  return seen;
}

TEST_P(Models, OfMachineCodeAreAsExactAsEager) {
  const Benchmark eager = make(GetParam(), at::kCPU), twin = make(GetParam(), at::kCPU);
  Benchmark exact = make(GetParam(), at::kCPU);
  exact.module->to(at::kDouble);
  for (at::Tensor& input : exact.inputs) input = in_doubles(input);
  // Of other dtypes other elements are dropped.
  for (const auto& module : {eager.module, twin.module, exact.module})
    module->train(GetParam() != "char_gpt");
  Compiled compiled = compile([&](const Tensors& in) { return Tensors{twin.loss(in)}; },
                              {.backend = "fuse", .name = twin.name, .watch = {twin.module}});
  const Tensors want = step_of(exact, [&] { return exact.loss(exact.inputs); }),
                own = step_of(eager, [&] { return eager.loss(eager.inputs); }),
                got = step_of(twin, [&] { return compiled(twin.inputs)[0]; });
  for (size_t k = 0; k < want.size(); ++k) {
    ASSERT_EQ(own[k].defined(), got[k].defined());
    if (own[k].defined()) {
      EXPECT_TRUE(fuzz::is_as_exact(want[k].detach(), own[k].detach(), got[k].detach()))
          << (k == 0 ? "loss" : "gradient " + std::to_string(k - 1));
    }
  }
  EXPECT_TRUE(compiled.explain(twin.inputs).eager_reason.empty()) << "the model was not compiled at all";
}

// Some CUDA kernels add in an order of their own (cuDNN's weight gradients, attention's backward): two eager
// runs differ too, unless libtorch is asked for deterministic ones.
TEST_P(Models, TrainBitEqualToEagerOnCuda) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no CUDA device";
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  at::globalContext().setDeterministicCuDNN(true);
  expect_equal_training(make(GetParam(), at::kCUDA), make(GetParam(), at::kCUDA), "eager");
  at::globalContext().setDeterministicCuDNN(false);
  at::globalContext().setDeterministicAlgorithms(false, false);
}

std::vector<std::string> all_models() {
  std::vector<std::string> names = bench::model_names();
  names.push_back("char_gpt");
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Models, testing::ValuesIn(all_models()),
                         [](const auto& test) { return test.param; });

TEST(CharGpt, DropsOutAnewWithAnotherSeed) {
  const Benchmark gpt = make_char_gpt(at::kCPU);
  Compiled compiled = compile([&](const Tensors& in) { return Tensors{gpt.loss(in)}; },
                              {.backend = "eager", .watch = {gpt.module}});
  auto loss_with_seed = [&](uint64_t seed) {
    torch::manual_seed(seed);
    return compiled(gpt.inputs)[0].item<double>();
  };
  const double first = loss_with_seed(1);
  EXPECT_NE(first, loss_with_seed(2));
  EXPECT_EQ(first, loss_with_seed(1));
}

TEST(CharGpt, StopsDroppingOutInEvaluation) {
  const Benchmark gpt = make_char_gpt(at::kCPU);
  Compiled compiled = compile([&](const Tensors& in) { return Tensors{gpt.loss(in)}; },
                              {.backend = "eager", .watch = {gpt.module}});
  compiled(gpt.inputs);
  gpt.module->eval();
  const double expected = gpt.loss(gpt.inputs).item<double>();
  EXPECT_EQ(compiled(gpt.inputs)[0].item<double>(), expected);
  EXPECT_EQ(compiled(gpt.inputs)[0].item<double>(), expected);
}

}  // namespace
