#include "frontend/compare.h"
#include "frontend/pairs.h"

namespace tandem {
namespace {

using test::Nested;
using test::Pair;
using test::same_tensor;

/// Weights that are wrappers all the way down, with a constant, a mask that has no gradient, and a place that
/// stays empty.
struct Weights {
  std::vector<Nested> layers;
  Pair bias;
  at::Tensor mask, unused;
};

struct StackImpl : torch::nn::Cloneable<StackImpl> {
  Weights weight;
  StackImpl() { StackImpl::reset(); }
  void reset() override {
    auto random = [] { return torch::randn({3}, at::kDouble); };
    weight = {{{{random(), random()}, {random(), 2}, "mean"}, {{random(), random()}, {random(), 3}, "sum"}},
              {random(), random()},
              torch::tensor({1, 0, 1}),
              {}};
    register_parameters(*this, "weight", weight);
  }
  Pair forward(const Pair& x) const {
    Pair y = x;
    for (const Nested& layer : weight.layers) y = y * layer.inner * layer.scaled.scale + layer.scaled.value;
    return (y + weight.bias) * weight.mask;
  }
};
TORCH_MODULE(Stack);

Pair input() {
  return {torch::randn({2, 3}, at::kDouble).requires_grad_(),
          torch::randn({2, 3}, at::kDouble).requires_grad_()};
}
Pair ones_like(const Pair& x) { return {at::ones_like(x.a), at::ones_like(x.b)}; }

TEST(WrapperModule, InnerTensorsAreParametersNamedByTheirPath) {
  Stack stack;
  EXPECT_EQ(stack->named_parameters().keys(),
            (std::vector<std::string>{"weight.layers.0.inner.a", "weight.layers.0.inner.b",
                                      "weight.layers.0.scaled.value", "weight.layers.1.inner.a",
                                      "weight.layers.1.inner.b", "weight.layers.1.scaled.value",
                                      "weight.bias.a", "weight.bias.b"}));
  EXPECT_EQ(stack->named_buffers().keys(), std::vector<std::string>{"weight.mask"});
  EXPECT_TRUE(stack->named_parameters()["weight.bias.b"].is_same(stack->weight.bias.b));
  EXPECT_TRUE(stack->weight.layers[1].inner.a.requires_grad());
  stack->to(torch::kFloat);
  EXPECT_EQ(stack->weight.layers[1].inner.a.scalar_type(), torch::kFloat);
}

TEST(WrapperModule, ACloneHasTheSameValuesInTensorsOfItsOwn) {
  Stack stack;
  auto twin = std::dynamic_pointer_cast<StackImpl>(stack->clone());
  Tensors ours = tensors_of(twin->weight), theirs = tensors_of(stack->weight);
  test::expect_same(ours, theirs);
  test::expect_same(twin->parameters(), stack->parameters());
  EXPECT_TRUE(
      twin->named_parameters()["weight.layers.1.scaled.value"].is_same(twin->weight.layers[1].scaled.value));
  EXPECT_FALSE(twin->weight.bias.a.is_same(stack->weight.bias.a));
  {
    torch::NoGradGuard no_grad;
    twin->weight.bias.a.zero_();
  }
  EXPECT_GT(stack->weight.bias.a.abs().sum().item<double>(), 0);
}

TEST(WrapperModule, TrainsWithAnOptimiserLikeTheOriginal) {
  Stack stack;
  auto twin = std::dynamic_pointer_cast<StackImpl>(stack->clone());
  auto fast = compile(twin, {.debug_asserts = true});
  torch::optim::AdamW eager_optimizer(stack->parameters()), optimizer(twin->parameters());
  Pair x = input();
  auto step = [&](auto&& forward, auto& optimiser) {
    optimiser.zero_grad();
    Pair y = forward(x);
    backward(y, ones_like(y));
    optimiser.step();
    return y;
  };
  for (int i = 0; i < 3; ++i) {
    Pair got = step(fast, optimizer),
         want = step([&](const Pair& in) { return stack->forward(in); }, eager_optimizer);
    test::expect_same(tensors_of(got), tensors_of(want));
  }
  test::expect_same(tensors_of(twin->weight), tensors_of(stack->weight));
  EXPECT_EQ(grad_of(twin->weight).layers[1].scaled.scale, 3);
}

TEST(WrapperModule, ExplainNamesWhatIsInsideTheWrappers) {
  Stack stack;
  std::string contract = compile(stack).explain(input()).contract.to_string();
  EXPECT_NE(contract.find("parameter weight.layers.1.inner.b"), contract.npos) << contract;
  EXPECT_NE(contract.find("argument 0.b"), contract.npos) << contract;
}

TEST(WrapperModule, ANameThatIsTakenIsRefused) {
  Stack stack;
  EXPECT_ANY_THROW(register_parameters(*stack, "weight", stack->weight));
}

}  // namespace
}  // namespace tandem
