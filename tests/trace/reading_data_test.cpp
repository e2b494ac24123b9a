// What libtorch itself reads of the data: classes are looked at when the code runs, and reasons name the
// operator that the program called.
#include <torch/csrc/autograd/generated/Functions.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include "support/compare.h"

namespace tandem {
namespace {

using test::contains;

at::Tensor reading_leaf(at::IntArrayRef sizes) { return torch::randn(sizes).requires_grad_(); }

TEST(ReadingData, ClassesOfAGivenNumber) {
  const Callable spread = [](const Tensors& in) {
    return Tensors{at::one_hot(in[0], 5), at::one_hot(in[0], 5).to(at::kFloat).matmul(in[1])};
  };
  for (const char* backend : {"eager", "debug"}) {
    const Compiled compiled(spread, Options{.backend = backend});
    const at::Tensor weights = torch::randn({5, 2}).requires_grad_();
    auto call = [&](const Callable& fn, std::vector<int64_t> classes) {
      return fn({at::tensor(classes).view({2, 2}), weights});
    };
    const Callable fast = [&](const Tensors& in) { return compiled(in); };
    for (const auto& classes : std::vector<std::vector<int64_t>>{{0, 1, 2, 4}, {3, 3, 3, 3}})
      test::expect_same(call(fast, classes), call(spread, classes));
    for (const auto& classes :
         std::vector<std::vector<int64_t>>{{0, 1, 2, 5}, {-1, 3, 3, 3}, {-1, 9, 0, 0}}) {
      auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
      const std::string want = first_line(test::message<c10::Error>([&] { call(spread, classes); }));
      EXPECT_NE(want, "");
      EXPECT_EQ(first_line(test::message<c10::Error>([&] { call(fast, classes); })), want);
    }
    EXPECT_EQ(compiled.explain({at::zeros({2, 2}, at::kLong), weights}).eager_reason, "");
  }
}

/// Nobody reads the result, and eager looks at the classes nevertheless.
TEST(ReadingData, ClassesThatAreNoneAreAnErrorWhereTheirResultIsDropped) {
  const Compiled compiled(
      [](const Tensors& in) {
        at::one_hot(in[0], 3);
        return Tensors{in[1] * 2};
      },
      {});
  EXPECT_NO_THROW(compiled({at::tensor({0, 2}, at::kLong), at::ones({2})}));
  EXPECT_THROW(compiled({at::tensor({0, 3}, at::kLong), at::ones({2})}), c10::Error);
}

TEST(ReadingData, ReasonsNameWhatWasCalled) {
  const Compiled compiled([](const Tensors& in) { return Tensors{at::masked_fill(in[0], in[0] > 0, in[1])}; },
                          {});
  const std::string reason = compiled.explain({reading_leaf({3}), reading_leaf({})}).eager_reason;
  EXPECT_TRUE(contains(reason, "the derivative of aten::masked_fill.Tensor") &&
              contains(reason, "masked_select"))
      << reason;
  const Compiled inside(
      [](const Tensors& in) {
        const at::Tensor value = in[1].detach().requires_grad_();
        return Tensors{torch::autograd::grad({at::masked_fill(in[0], in[0] > 0, value).sum()}, {value})[0]};
      },
      {});
  EXPECT_TRUE(contains(inside.explain({at::ones({3}), at::ones({})}).eager_reason,
                       "the derivative of aten::masked_fill.Tensor"));
}

/// As a checkpoint does, which runs its function anew inside a node of libtorch's.
struct RunWhenUnpacked : torch::autograd::SavedVariableHooks {
  explicit RunWhenUnpacked(std::function<void()> run) : run_(std::move(run)) {}
  void call_pack_hook(const at::Tensor& tensor) override { kept_ = tensor; }
  at::Tensor call_unpack_hook() override {
    run_();
    return kept_;
  }

 private:
  const std::function<void()> run_;
  at::Tensor kept_;
};

TEST(ReadingData, WhatTheProgramReadsInsideAnotherBackwardIsTheProgramsDoing) {
  const Compiled compiled([](const Tensors& in) { return Tensors{in[0] * in[0].max().item<double>()}; },
                          Options{.must_compile = true});
  std::string said;
  const at::Tensor y = reading_leaf({3}).sin();
  dynamic_cast<torch::autograd::generated::SinBackward0&>(*y.grad_fn())
      .self_.register_hooks(std::make_unique<RunWhenUnpacked>(
          [&] { said = test::message<UnsupportedError>([&] { compiled({at::ones({3})}); }); }));
  y.sum().backward();
  EXPECT_TRUE(contains(said, "item") && !contains(said, "derivative")) << said;
}

}  // namespace
}  // namespace tandem
