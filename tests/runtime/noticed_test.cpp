// What changes between calls is noticed, what does not is not traced again.
#include "runtime/compare.h"

namespace tandem {
namespace {

using test::contains;
using test::counter;
using test::leaf;
using test::same_values;

struct NetImpl : torch::nn::Module {
  NetImpl() {
    linear = register_module("linear", torch::nn::Linear(4, 4));
    norm = register_module("norm", torch::nn::BatchNorm1d(4));
    dropout = register_module("dropout", torch::nn::Dropout(0.5));
  }
  at::Tensor forward(at::Tensor x) { return dropout(norm(linear(x)).tanh()); }
  torch::nn::Linear linear = nullptr;
  torch::nn::BatchNorm1d norm = nullptr;
  torch::nn::Dropout dropout = nullptr;
};
TORCH_MODULE(Net);

/// A model and its compiled twin with parameters of its own, changed and called alike.
class Noticed : public testing::Test {
 protected:
  Noticed() {
    torch::manual_seed(0);
    torch::NoGradGuard no_grad;
    for (size_t i = 0; i < plain->parameters().size(); ++i)
      fast->parameters()[i].copy_(plain->parameters()[i]);
  }

  template <class Change>
  void change(const Change& how) {
    how(plain);
    how(twin);
  }

  /// Forward, backward and buffers are equal; returns how many traces it took.
  uint64_t step(const at::TensorOptions& options = at::kFloat) {
    at::Tensor x = torch::randn({3, 4}, options).requires_grad_(),
               other = x.detach().clone().requires_grad_();
    uint64_t before = counter("trace");
    torch::manual_seed(5);
    at::Tensor want = plain(x);
    torch::manual_seed(5);
    at::Tensor got = fast(other);
    EXPECT_TRUE(test::same_tensor(got, want));
    plain->zero_grad();
    twin->zero_grad();
    want.sum().backward();
    got.sum().backward();
    EXPECT_TRUE(same_values(other.grad(), x.grad()));
    auto wanted = plain->named_parameters();
    for (const auto& item : twin->named_parameters())
      EXPECT_TRUE(same_values(item.value().grad(), wanted[item.key()].grad())) << item.key();
    auto buffers = plain->named_buffers();
    for (const auto& item : twin->named_buffers())
      EXPECT_TRUE(same_values(item.value(), buffers[item.key()])) << item.key();
    return counter("trace") - before;
  }

  Net plain, twin;
  CompiledModule<NetImpl> fast = compile(twin);
};

TEST_F(Noticed, TheSameSignatureIsNotTracedAgain) {
  EXPECT_EQ(step(), 1u);
  EXPECT_EQ(step(), 0u);
  EXPECT_EQ(step(), 0u);
}

TEST_F(Noticed, EvalAndTrain) {
  step();
  change([](Net& net) { net->eval(); });
  EXPECT_EQ(step(), 1u);
  EXPECT_EQ(step(), 0u);
  change([](Net& net) { net->train(); });
  EXPECT_EQ(step(), 0u);
  change([](Net& net) { net->dropout->eval(); });
  EXPECT_EQ(step(), 1u);
}

TEST_F(Noticed, AnotherDtype) {
  step();
  change([](Net& net) { net->to(torch::kDouble); });
  EXPECT_EQ(step(at::kDouble), 1u);
  EXPECT_EQ(step(at::kDouble), 0u);
  change([](Net& net) { net->to(torch::kFloat); });
  step();
}

TEST_F(Noticed, AFrozenParameter) {
  step();
  change([](Net& net) { net->linear->weight.set_requires_grad(false); });
  EXPECT_EQ(step(), 1u);
  change([](Net& net) { net->linear->weight.set_requires_grad(true); });
  EXPECT_EQ(step(), 0u);
}

TEST_F(Noticed, OtherDataBehindAParameter) {
  step();
  at::Tensor data = torch::randn({4, 4});
  change([&](Net& net) { net->linear->weight.set_data(data.clone()); });
  step();
  step();
  at::Tensor strided = torch::randn({4, 4}).t();
  change([&](Net& net) { net->linear->weight.set_data(strided.clone()); });
  step();
}

TEST_F(Noticed, AnotherModuleInASubmodulesPlace) {
  step();
  change([&](Net& net) {
    torch::manual_seed(11);
    net->linear = net->replace_module("linear", torch::nn::Linear(4, 4));
  });
  EXPECT_EQ(step(), 1u);
  change([&](Net& net) { net->linear->eval(); });
  step();
  change([&](Net& net) {
    net->dropout = net->replace_module("dropout", torch::nn::Dropout(0.5));
    net->dropout->eval();
  });
  step();
}

TEST_F(Noticed, ValuesWrittenIntoAParameter) {
  step();
  change([](Net& net) {
    torch::NoGradGuard no_grad;
    net->linear->weight.add_(1);
  });
  EXPECT_EQ(step(), 0u);
}

TEST(NoticedInFunctions, GradModeInferenceModeAndDefaultDtype) {
  Compiled fast([](const Tensors& in) { return Tensors{in[0] * torch::ones({2})}; }, {});
  at::Tensor a = leaf({2});
  EXPECT_TRUE(fast({a})[0].requires_grad());
  {
    torch::NoGradGuard guard;
    EXPECT_FALSE(fast({a})[0].requires_grad());
  }
  {
    c10::InferenceMode guard;
    EXPECT_TRUE(fast({a})[0].is_inference());
  }
  torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
  EXPECT_EQ(fast({a})[0].scalar_type(), at::kDouble);
  torch::set_default_dtype(caffe2::TypeMeta::Make<float>());
  EXPECT_EQ(fast({a})[0].scalar_type(), at::kFloat);
  EXPECT_TRUE(fast({a})[0].requires_grad());
}

TEST(NoticedInFunctions, AReplacedCapture) {
  at::Tensor captured = leaf({2});
  Compiled fast([&](const Tensors& in) { return Tensors{in[0] * captured}; }, {});
  at::Tensor a = leaf({2});
  EXPECT_TRUE(same_values(fast({a})[0], a * captured));
  captured = leaf({2});
  EXPECT_TRUE(same_values(fast({a})[0], a * captured));
  captured = leaf({2}, false);
  EXPECT_TRUE(same_values(fast({a})[0], a * captured));
}

TEST(NoticedInFunctions, ACaptureReplacedAfterSeveralSignaturesOrByTwoFunctions) {
  at::Tensor captured = leaf({2});
  Callable fn = [&](const Tensors& in) { return Tensors{in[0] * captured}; };
  Compiled one(fn, {}), two(fn, {});
  const Tensors shapes = {leaf({2}), leaf({3, 2})};
  for (int round = 0; round < 3; ++round) {
    for (const at::Tensor& a : shapes)
      for (const Compiled& fast : {one, two}) EXPECT_TRUE(same_values(fast({a})[0], a * captured)) << round;
    captured = leaf({2});
  }
}

TEST(NoticedInFunctions, AWholeModelReplaced) {
  Net net;
  Compiled train([&](const Tensors& in) { return Tensors{net(in[0]).sum()}; }, {}),
      plain([&](const Tensors& in) { return Tensors{net->linear(in[0])}; }, {});
  at::Tensor x = torch::randn({3, 4});
  for (int round = 0; round < 3; ++round) {
    train({x})[0].backward();
    EXPECT_TRUE(net->linear->weight.grad().defined()) << round;
    EXPECT_TRUE(same_values(plain({x})[0], net->linear(x))) << round;
    net = Net();
  }
}

TEST(NoticedInFunctions, StridesOffsetsAndAliasing) {
  Compiled fast([](const Tensors& in) { return Tensors{in[0] + in[1].as_strided({2}, {1})}; }, {});
  at::Tensor memory = torch::arange(8.f), a = torch::ones(2);
  for (const at::Tensor& b : {memory.slice(0, 0, 2), memory.slice(0, 3, 5), memory.slice(0, 0, 4, 2)}) {
    EXPECT_TRUE(same_values(fast({a, b})[0], a + b.as_strided({2}, {1})));
    EXPECT_TRUE(same_values(fast({b, b})[0], b + b.as_strided({2}, {1})));
  }
}

TEST(Signatures, TheLeastRecentlyUsedGoesWithOneWarning) {
  Compiled fast([](const Tensors& in) { return Tensors{in[0].sin()}; },
                {.name = "sine", .max_signatures = 2});
  uint64_t evicted = counter("signature_evicted");
  testing::internal::CaptureStderr();
  for (int64_t size : {1, 2, 1, 3}) fast({torch::ones(size)});
  std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(warning, "sine: more than 2 signatures")) << warning;
  EXPECT_TRUE(contains(warning, "argument 0: sizes [1] -> [3]")) << warning;
  EXPECT_EQ(counter("signature_evicted"), evicted + 1);
  uint64_t traces = counter("trace");
  fast({torch::ones(1)});
  EXPECT_EQ(counter("trace"), traces);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(same_values(fast({torch::ones(2)})[0], torch::ones(2).sin()));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(counter("trace"), traces + 1);
}

TEST(SignaturesDeathTest, TheLogSaysWhatChanged) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  setenv("TANDEM_LOGS", "signature", 1);
  auto run = [](auto change) {
    torch::nn::Linear model(2, 2);
    Compiled fast([&](const Tensors& in) { return Tensors{model(in[0])}; },
                  {.name = "step", .watch = {model.ptr()}});
    fast({torch::ones({1, 2})});
    change(model, fast);
    std::exit(0);
  };
  auto exits = testing::ExitedWithCode(0);
  EXPECT_EXIT(run([](auto&, auto& fast) { fast({torch::ones({3, 2})}); }), exits,
              "step: traced again: argument 0: sizes \\[1, 2\\] -> \\[3, 2\\]");
  EXPECT_EXIT(run([](auto& model, auto& fast) {
                model->eval();
                fast({torch::ones({1, 2})});
              }),
              exits, "step: traced again: module .*: train -> eval");
  EXPECT_EXIT(run([](auto& model, auto& fast) {
                model->weight.set_requires_grad(false);
                fast({torch::ones({1, 2})});
              }),
              exits, "step: traced again: parameter weight: requires_grad true -> false");
  unsetenv("TANDEM_LOGS");
}

}  // namespace
}  // namespace tandem
