// Custom autograd functions inside a traced program.
#include "runtime/compare.h"

namespace tandem {
namespace {

using test::compare;
using test::compare_both;
using test::leaf;
using test::leaves;
using test::non_leaves;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct ScaledExp : Function<ScaledExp> {
  static at::Tensor forward(AutogradContext* context, at::Tensor x, double scale) {
    at::Tensor y = x.exp() * scale;
    context->save_for_backward({x, y});
    context->saved_data["scale"] = scale;
    return y;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    auto saved = context->get_saved_variables();
    return {gradients[0] * saved[1] + saved[0] * context->saved_data["scale"].toDouble(), at::Tensor()};
  }
};

TEST(CustomFunctions, SaveInputsOutputsAndNumbers) {
  compare_both([](const Tensors& in) { return Tensors{ScaledExp::apply(in[0].sin(), 2.5)}; },
               [](bool rg) { return leaves({{3}}, {rg}); });
}

struct CloneAddOne : Function<CloneAddOne> {
  static at::Tensor forward(AutogradContext*, at::Tensor x) { return x.clone(); }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[0] + 1}; }
};

TEST(CustomFunctions, A14_OnAnInputWithoutGradient) {
  compare_both(
      [](const Tensors& in) { return Tensors{CloneAddOne::apply(in[0]), CloneAddOne::apply(in[0] * 2)}; },
      [](bool rg) { return leaves({{3}}, {rg}); });
}

struct HalfGradient : Function<HalfGradient> {
  static at::Tensor forward(AutogradContext*, at::Tensor x) { return x; }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[0] * 0.5}; }
};

TEST(CustomFunctions, D19_ReturnTheirInputWithAGradientOfTheirOwn) {
  auto make = [](bool rg) { return leaves({{3}}, {rg}); };
  compare_both([](const Tensors& in) { return Tensors{HalfGradient::apply(in[0])}; }, make,
               {.write_outputs = false, .same_bases = false});
  compare_both([](const Tensors& in) { return Tensors{HalfGradient::apply(in[0]) * 2}; }, make);
  compare_both([](const Tensors& in) { return Tensors{HalfGradient::apply(in[0] * 3)}; }, make,
               {.write_outputs = false, .same_bases = false});
  compare_both([](const Tensors& in) { return Tensors{HalfGradient::apply(in[0]).sin(), in[0] * 2}; },
               [](bool rg) { return non_leaves({{3}}, {rg}); });
}

at::Tensor& captured() {
  static at::Tensor tensor = torch::full({3}, 3.f);
  return tensor;
}

struct ReadsACapture : Function<ReadsACapture> {
  static at::Tensor forward(AutogradContext*, at::Tensor x) { return x.sin(); }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    return {gradients[0] * captured()};
  }
};

TEST(CustomFunctions, WhoseBackwardReadsACapturedTensor) {
  captured().fill_(3);
  Callable fn = [](const Tensors& in) { return Tensors{ReadsACapture::apply(in[0] * 2)}; };
  compare(fn, leaves({{3}}, {true}), {.compiled = false});
  Compiled fast(fn, {});
  for (float value : {3.f, 5.f}) {
    captured().fill_(value);
    at::Tensor a = leaf({3});
    fast({a})[0].sum().backward();
    EXPECT_TRUE(test::same_values(a.grad(), torch::full({3}, value * 2)));
  }
}

struct TwoOutputs : Function<TwoOutputs> {
  static variable_list forward(AutogradContext* context, at::Tensor x, at::Tensor y) {
    at::Tensor index = x.argsort();
    context->mark_non_differentiable({index});
    context->save_for_backward({y});
    return {x * y, index, x - y};
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    at::Tensor y = context->get_saved_variables()[0];
    at::Tensor product = gradients[0].defined() ? gradients[0] * y : torch::zeros_like(y);
    return {product, gradients[2].defined() ? gradients[2] : at::Tensor()};
  }
};

TEST(CustomFunctions, WithSeveralOutputsOfWhichSomeHaveNoGradient) {
  compare(
      [](const Tensors& in) {
        variable_list out = TwoOutputs::apply(in[0], in[1]);
        return Tensors{out[0], out[1], out[2]};
      },
      leaves({{3}, {3}}, {true, true}));
}

struct WritesItsInput : Function<WritesItsInput> {
  static at::Tensor forward(AutogradContext* context, at::Tensor x) {
    x.mul_(2);
    context->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[0] * 2}; }
};

TEST(CustomFunctions, ThatWriteTheirInput) {
  compare(
      [](const Tensors& in) {
        at::Tensor y = in[0] + 1;
        WritesItsInput::apply(y);
        return Tensors{y.sin()};
      },
      leaves({{3}}, {true}));
  compare([](const Tensors& in) { return Tensors{WritesItsInput::apply(in[0]) + 1}; },
          non_leaves({{3}}, {true}), {.compiled = false});
}

struct StraightThrough : Function<StraightThrough> {
  static at::Tensor forward(AutogradContext*, at::Tensor x) { return x.round(); }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[0]}; }
};

TEST(CustomFunctions, AStraightThroughEstimator) {
  compare([](const Tensors& in) { return Tensors{StraightThrough::apply(in[0] * 4) * in[0]}; },
          leaves({{5}}, {true}));
}

}  // namespace
}  // namespace tandem
