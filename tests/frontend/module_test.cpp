#include "frontend/compare.h"

namespace tandem {
namespace {

using test::counter;
using test::gradients;
using test::same_tensor;

struct GateImpl : torch::nn::Module {
  torch::nn::Linear linear{nullptr};
  torch::nn::Dropout dropout{nullptr};
  GateImpl() {
    linear = register_module("linear", torch::nn::Linear(4, 4));
    dropout = register_module("dropout", torch::nn::Dropout(0.5));
  }
  at::Tensor forward(const at::Tensor& x, double scale = 1.0, std::optional<at::Tensor> mask = std::nullopt,
                     const std::string& kind = "relu") {
    at::Tensor y = dropout(linear(x)) * scale;
    if (mask) y = y * *mask;
    return kind == "relu" ? y.relu() : y.tanh();
  }
};
TORCH_MODULE(Gate);

TEST(CompileModule, HoldersAndSharedPointersAreCalledLikeTheModule) {
  torch::nn::Linear linear(3, 4);
  auto held = compile(linear);
  auto shared = compile(linear.ptr());
  at::Tensor x = torch::randn({2, 3}).requires_grad_();
  for (const at::Tensor& got : {held(x), shared(x)}) {
    EXPECT_TRUE(same_tensor(got, linear(x)));
    test::expect_same(gradients(got, {x, linear->weight, linear->bias}),
                      gradients(linear(x), {x, linear->weight, linear->bias}));
  }
}

TEST(CompileModule, TrailingArgumentsMayBeLeftOut) {
  Gate gate;
  gate->eval();
  auto fast = compile(gate);
  at::Tensor x = torch::randn({2, 4}), mask = torch::rand({2, 4});
  EXPECT_TRUE(same_tensor(fast(x), gate(x)));
  EXPECT_TRUE(same_tensor(fast(x, 2.0), gate(x, 2.0)));
  EXPECT_TRUE(same_tensor(fast(x, 2), gate(x, 2)));
  EXPECT_TRUE(same_tensor(fast(x, 2.0, mask), gate(x, 2.0, mask)));
  EXPECT_TRUE(same_tensor(fast(x, 2.0, std::nullopt, "tanh"), gate(x, 2.0, std::nullopt, "tanh")));
  EXPECT_TRUE(same_tensor(fast(x, 3.0, std::optional(mask), std::string("tanh")),
                          gate(x, 3.0, std::optional(mask), "tanh")));
}

TEST(CompileModule, EvalAndTrainAreNoticed) {
  Gate gate;
  auto fast = compile(gate);
  at::Tensor x = torch::randn({2, 4});
  for (bool train : {true, false, true}) {
    fast->train(train);
    EXPECT_EQ(gate->is_training(), train);
    torch::manual_seed(5);
    at::Tensor got = fast(x);
    torch::manual_seed(5);
    EXPECT_TRUE(same_tensor(got, gate(x)));
  }
}

TEST(CompileModule, TrainsWithItsOwnersOptimiser) {
  torch::manual_seed(1);
  torch::nn::Sequential reference(torch::nn::Linear(3, 8), torch::nn::Tanh(), torch::nn::Linear(8, 1));
  auto copy = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(reference->clone());
  auto fast = compile(copy);
  torch::optim::AdamW eager_optimizer(reference->parameters()), optimizer(fast->parameters());
  at::Tensor x = torch::randn({5, 3});
  auto step = [&x](auto&& forward, auto& optimiser) {
    optimiser.zero_grad();
    at::Tensor loss = forward(x).pow(2).mean();
    loss.backward();
    optimiser.step();
    return loss;
  };
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(same_tensor(step(fast, optimizer),
                            step([&](at::Tensor in) { return reference->forward(in); }, eager_optimizer)))
        << i;
  test::expect_same(copy->parameters(), reference->parameters());
}

TEST(CompileModule, LstmReturnsItsNestedTuple) {
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(3, 4).num_layers(2));
  auto fast = compile(lstm);
  at::Tensor x = torch::randn({5, 2, 3}).requires_grad_();
  auto [output, state] = fast(x);
  auto [want, want_state] = lstm(x);
  EXPECT_TRUE(same_tensor(output, want));
  EXPECT_TRUE(same_tensor(std::get<0>(state), std::get<0>(want_state)));
  EXPECT_TRUE(same_tensor(std::get<1>(state), std::get<1>(want_state)));
  Tensors leaves = lstm->parameters();
  leaves.push_back(x);
  test::expect_same(gradients(output, leaves), gradients(want, leaves));
  auto carried = std::make_tuple(std::get<0>(state).detach(), std::get<1>(state).detach());
  EXPECT_TRUE(same_tensor(std::get<0>(fast(x, carried)), std::get<0>(lstm(x, carried))));
}

TEST(CompileModule, DtypeAndFrozenParametersAreNoticed) {
  torch::nn::Linear linear(3, 2);
  auto fast = compile(linear);
  at::Tensor x = torch::randn({2, 3});
  EXPECT_TRUE(same_tensor(fast(x), linear(x)));
  linear->weight.requires_grad_(false);
  linear->bias.requires_grad_(false);
  EXPECT_TRUE(same_tensor(fast(x), linear(x)));
  fast->to(torch::kDouble);
  EXPECT_TRUE(same_tensor(fast(x.to(torch::kDouble)), linear(x.to(torch::kDouble))));
}

TEST(CompileModule, OptionsOfLibtorchsOwnModulesPassThrough) {
  torch::nn::ConvTranspose2d transpose(torch::nn::ConvTranspose2dOptions(2, 3, 3).stride(2));
  auto fast = compile(transpose);
  at::Tensor x = torch::randn({1, 2, 4, 4});
  std::vector<int64_t> size{10, 10};
  EXPECT_TRUE(same_tensor(fast(x), transpose(x)));
  EXPECT_TRUE(same_tensor(fast(x, at::IntArrayRef(size)), transpose(x, at::IntArrayRef(size))));
  EXPECT_TRUE(same_tensor(fast(x, std::nullopt), transpose(x, std::nullopt)));
}

TEST(CompileModule, ExplainNamesTheParameters) {
  Gate gate;
  auto fast = compile(gate, {.name = "gate"});
  Explanation explanation = fast.explain(torch::randn({2, 4}), 2.0);
  std::string contract = explanation.contract.to_string();
  EXPECT_NE(contract.find("linear.weight"), contract.npos) << contract;
}

TEST(CompileModule, AnEmptyHolderIsRefused) {
  torch::nn::Linear empty{nullptr};
  EXPECT_NE(test::message<Error>([&] { compile(empty); }).find("empty"), std::string::npos);
}

TEST(CompileModule, ForwardIsTheCall) {
  Gate gate;
  gate->eval();
  auto fast = compile(gate);
  const at::Tensor x = torch::randn({2, 4});
  const uint64_t before = counters()["compile_forward"];
  EXPECT_TRUE(same_tensor(fast.forward(x, 2.0), gate->forward(x, 2.0)));
  EXPECT_EQ(counters()["compile_forward"], before + 1);
}

TEST(CompileModule, OneOfNothingSaysSoWhenItIsCalled) {
  CompiledModule<GateImpl> fast;
  EXPECT_EQ(fast.get(), nullptr);
  EXPECT_NE(test::message<Error>([&] { fast(torch::ones({2, 4})); }).find("nothing was compiled"),
            std::string::npos);
  Gate gate;
  gate->eval();
  fast = compile(gate);
  EXPECT_TRUE(same_tensor(fast(torch::ones({2, 4})), gate(torch::ones({2, 4}))));
}

template <class F, class... Args>
concept CanCall = requires(F f, Args... args) { f(args...); };
static_assert(CanCall<CompiledModule<GateImpl>, at::Tensor>);
static_assert(!CanCall<CompiledModule<GateImpl>>, "forward needs a tensor");
static_assert(!CanCall<CompiledModule<GateImpl>, at::Tensor, double, at::Tensor, std::string, int>,
              "forward takes four arguments");
static_assert(!CanCall<CompiledModule<GateImpl>, std::string>, "forward needs a tensor");

}  // namespace
}  // namespace tandem
