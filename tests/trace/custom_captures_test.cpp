// Custom autograd functions and what they capture: in the forward, in the backward, in the backward of that.
#include "runtime/compare.h"

namespace tandem {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// What the scene returns is the same with the function as it is and compiled.
void expect_alike(const std::function<Tensors(bool compiled)>& scene) {
  const Tensors want = scene(false), got = scene(true);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(test::same_values(got[i], want[i])) << "tensor " << i;
}

Callable compiled_or_not(bool compiled, const Callable& fn) {
  if (!compiled) return fn;
  return [fast = std::make_shared<Compiled>(fn, Options{})](const Tensors& in) { return (*fast)(in); };
}

at::Tensor counted(std::vector<double> values) { return torch::tensor(values, at::kDouble).requires_grad_(); }

struct Product : Function<Product> {
  static at::Tensor forward(AutogradContext* context, at::Tensor x, at::Tensor w) {
    context->save_for_backward({x, w});
    return x * w;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    return {gradients[0] * saved[1], gradients[0] * saved[0]};
  }
};

// Such a function takes its edges from the real tensor, before any operator is called.
TEST(CustomCaptures, AppliedToWhatTheProgramCaptured) {
  using Program = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& w)>;
  const Program programs[] = {
      [](const at::Tensor& x, const at::Tensor& w) { return Product::apply(x, w); },
      [](const at::Tensor& x, const at::Tensor& w) { return Product::apply(x.sin(), w).exp() * 2; },
      [](const at::Tensor& x, const at::Tensor& w) { return Product::apply(x * w, w).exp(); },
      [](const at::Tensor& x, const at::Tensor& w) { return Product::apply(Product::apply(x, w), w) + w; },
  };
  for (const Program& program : programs)
    for (bool computed : {false, true})
      expect_alike([&](bool compiled) {
        const at::Tensor x = counted({1, 2, 3}), leaf = counted({2, 3, 5}), w = computed ? leaf * 2 : leaf;
        const Callable fn =
            compiled_or_not(compiled, [&](const Tensors& in) { return Tensors{program(in[0], w)}; });
        Tensors seen;
        for (int call = 0; call < 2; ++call) {
          Tensors next =
              torch::autograd::grad({fn({x})[0].sum()}, {x, leaf}, {}, true, /*create_graph=*/true);
          seen.insert(seen.end(), next.begin(), next.end());
          next = torch::autograd::grad({next[0].sum() + next[1].square().sum()}, {x, leaf}, {}, true);
          seen.insert(seen.end(), next.begin(), next.end());
        }
        return seen;
      });
}

TEST(CustomCaptures, AppliedToAParameterIsCompiled) {
  const at::Tensor w = counted({2, 3});
  Compiled fast([&](const Tensors& in) { return Tensors{Product::apply(in[0], w).exp()}; }, {});
  EXPECT_EQ(fast.explain({counted({1, 2})}).eager_reason, "");
}

// It asks the real tensor, which knows nothing of the write, whether it requires grad.
TEST(CustomCaptures, AppliedToACaptureThatAWriteGaveAHistory) {
  expect_alike([](bool compiled) {
    const at::Tensor x = counted({1, 2, 3}), w = torch::tensor({2., 3., 5.}, at::kDouble);
    const at::Tensor y = compiled_or_not(compiled, [&](const Tensors& in) {
      w.mul_(in[0]);
      return Tensors{Product::apply(w, w)};
    })({x})[0];
    EXPECT_TRUE(y.requires_grad());
    return Tensors{y, torch::autograd::grad({y.sum()}, {x})[0]};
  });
}

/// What the backward returns besides its gradient: nothing of it comes from an operator on fakes.
at::Tensor& given_gradient() {
  static at::Tensor tensor;
  return tensor;
}

struct ReturnsACapture : Function<ReturnsACapture> {
  static at::Tensor forward(AutogradContext*, at::Tensor x) { return x * given_gradient(); }
  static variable_list backward(AutogradContext*, variable_list) { return {given_gradient()}; }
};

struct ReturnsNumbers : Function<ReturnsNumbers> {
  static at::Tensor forward(AutogradContext*, at::Tensor x) { return x * 2; }
  static variable_list backward(AutogradContext*, variable_list) {
    return {at::tensor({1., 2., 3.}, at::kDouble)};
  }
};

TEST(CustomCaptures, BackwardsThatReturnWhatNoOperatorMade) {
  given_gradient() = torch::tensor({7., 8., 9.}, at::kDouble);
  for (const auto& apply : {+[](const at::Tensor& x) { return ReturnsACapture::apply(x); },
                            +[](const at::Tensor& x) { return ReturnsNumbers::apply(x); }})
    expect_alike([&](bool compiled) {
      const Callable fn = compiled_or_not(compiled, [&](const Tensors& in) { return Tensors{apply(in[0])}; });
      Tensors seen;
      for (int call = 0; call < 3; ++call) {
        const at::Tensor x = counted({1, 2, 3});
        seen.push_back(torch::autograd::grad({fn({x})[0].sum()}, {x})[0]);
      }
      return seen;
    });
}

at::Tensor& weight() {
  static at::Tensor tensor;
  return tensor;
}

/// Checkpointing as it is written by hand: the forward again, and its backward inside of this one.
struct Rematerialised : Function<Rematerialised> {
  static at::Tensor forward(AutogradContext* context, at::Tensor x) {
    context->save_for_backward({x});
    return (x * weight()).sin();
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    at::AutoGradMode enabled(true);
    at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_();
    (x * weight()).sin().backward(gradients[0]);
    return {x.grad()};
  }
};

TEST(CustomCaptures, ABackwardInsideABackwardReachesACapture) {
  expect_alike([](bool compiled) {
    weight() = counted({2, 3, 5});
    const Callable fn = compiled_or_not(
        compiled, [](const Tensors& in) { return Tensors{Rematerialised::apply(in[0].exp()) * in[0]}; });
    const at::Tensor x = counted({1, 2, 3});
    for (int call = 0; call < 2; ++call) fn({x})[0].sum().backward();
    return Tensors{x.grad(), weight().grad()};
  });
}

struct CountsInBackward : Function<CountsInBackward> {
  static at::Tensor forward(AutogradContext*, at::Tensor x) { return x * 2; }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    weight().add_(1);
    return {gradients[0] * 2};
  }
};

TEST(CustomCaptures, ABackwardWritesACapture) {
  expect_alike([](bool compiled) {
    weight() = torch::zeros({3}, at::kDouble);
    const Callable fn =
        compiled_or_not(compiled, [](const Tensors& in) { return Tensors{CountsInBackward::apply(in[0])}; });
    const at::Tensor x = counted({1, 2, 3});
    for (int call = 0; call < 2; ++call) fn({x})[0].sum().backward();
    return Tensors{x.grad(), weight()};
  });
}

/// A custom function whose backward alone reads a captured tensor.
struct ScaledGradient : Function<ScaledGradient> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, at::Tensor* scale) {
    ctx->saved_data["scale"] = reinterpret_cast<int64_t>(scale);
    return x * 2;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    return {gradients[0] * *reinterpret_cast<at::Tensor*>(ctx->saved_data["scale"].toInt()), {}};
  }
};

TEST(CustomCaptures, OnlyASecondDerivativeLeadsToOne) {
  at::Tensor scale = test::leaf({2});
  Compiled fast([&](const Tensors& in) { return Tensors{ScaledGradient::apply(in[0], &scale)}; }, {});
  const at::Tensor x = test::leaf({2});
  const at::Tensor first =
      torch::autograd::grad({fast({x})[0].sum()}, {x}, {}, true, /*create_graph=*/true)[0];
  EXPECT_TRUE(at::equal(first, scale));
  EXPECT_TRUE(at::equal(torch::autograd::grad({first.sum()}, {scale})[0], at::ones({2})));
}

TEST(CustomCaptures, AGradientThatTheProgramSets) {
  expect_alike([](bool compiled) {
    const at::Tensor w = counted({2, 3});
    const Callable fn = compiled_or_not(compiled, [&](const Tensors& in) {
      at::Tensor y = in[0] * w;
      w.mutable_grad() = y.detach();
      return Tensors{y};
    });
    const at::Tensor x = counted({1, 2});
    for (int call = 0; call < 2; ++call) fn({x * (call + 1)});
    return Tensors{w.grad()};
  });
}

}  // namespace
}  // namespace tandem
