// The modes in which a program runs, and those that it switches itself, while it is traced.
#include "runtime/compare.h"
#include "support/autocast.h"

namespace tandem {
namespace {

using test::Autocast;
using test::compare;
using test::compare_both;
using test::counter;
using test::leaf;
using test::leaves;
using test::Maker;
using test::non_leaves;
using test::same_tensor;
using test::same_values;

TEST(TracedModes, RegionsWithoutGradients) {
  compare_both(
      [](const Tensors& in) {
        at::Tensor scale;
        {
          torch::NoGradGuard no_grad;
          scale = in[0].exp();
        }
        return Tensors{in[0] * scale, scale};
      },
      [](bool rg) { return leaves({{3}}, {rg}); });
}

TEST(TracedModes, GradientsEnabledInsideARegionWithout) {
  compare_both(
      [](const Tensors& in) {
        torch::NoGradGuard no_grad;
        at::Tensor quiet = in[0].exp();
        torch::AutoGradMode enabled(true);
        return Tensors{in[0] * quiet};
      },
      [](bool rg) { return leaves({{3}}, {rg}); });
}

TEST(TracedModes, TheProgramsOwnModeDoesNotLeak) {
  Compiled fast([](const Tensors& in) { return Tensors{in[0] * 2}; }, {});
  fast({leaf({2})});
  EXPECT_TRUE(torch::GradMode::is_enabled());
  torch::NoGradGuard no_grad;
  fast({leaf({2})});
  EXPECT_FALSE(torch::GradMode::is_enabled());
}

TEST(TracedModes, InferenceMode) {
  Callable fn = [](const Tensors& in) {
    return Tensors{in[0].mul_(2), in[0].view({-1}), in[0].sin() + in[1]};
  };
  for (const char* backend : {"eager", "debug"}) {
    Compiled fast(fn, {.backend = backend});
    at::Tensor normal = leaf({2, 2}), a = torch::ones({2, 2}), b = torch::ones({2, 2});
    c10::InferenceMode guard;
    Tensors got = fast({a, normal}), want = fn({b, normal});
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(same_values(got[i], want[i]));
      EXPECT_EQ(got[i].is_inference(), want[i].is_inference()) << i;
    }
    at::Tensor inside = torch::ones({2, 2}), other = torch::ones({2, 2});
    EXPECT_TRUE(same_values(fast({inside, normal})[2], fn({other, normal})[2]));
    EXPECT_TRUE(same_values(inside, other));
  }
}

TEST(TracedModes, InferenceModeInside) {
  Callable fn = [](const Tensors& in) {
    at::Tensor table;
    {
      c10::InferenceMode guard;
      table = in[0].detach().exp();
    }
    return Tensors{table};
  };
  Compiled fast(fn, {});
  at::Tensor a = leaf({3});
  EXPECT_TRUE(same_values(fast({a})[0], fn({a})[0]));
}

TEST(TracedModes, AnInferenceTensorOutsideInferenceMode) {
  at::Tensor table;
  {
    c10::InferenceMode guard;
    table = torch::ones(3);
  }
  Callable fn = [](const Tensors& in) { return Tensors{in[0] + in[1]}; };
  Compiled fast(fn, {});
  at::Tensor a = leaf({3});
  at::Tensor got = fast({a, table})[0];
  EXPECT_TRUE(same_tensor(got, fn({a, table})[0]));
  EXPECT_TRUE(at::equal(torch::autograd::grad({got.sum()}, {a})[0], torch::ones(3)));
}

TEST(TracedModes, AutocastAround) {
  torch::nn::Linear model(4, 4);
  Callable fn = [&](const Tensors& in) {
    return Tensors{torch::softmax(model(in[0]) + model(in[0]), 1), in[0].mm(in[0].t())};
  };
  for (const char* backend : {"eager", "debug"}) {
    Compiled fast(fn, {.backend = backend});
    at::Tensor x = leaf({4, 4});
    auto gradients = [&](const Callable& f, bool cast) {
      Tensors out;
      {
        std::optional<Autocast> autocast;
        if (cast) autocast.emplace(at::kBFloat16);
        out = f({x});
      }
      Tensors all =
          torch::autograd::grad({out[0].to(at::kFloat).square().sum() + out[1].to(at::kFloat).sum()},
                                {x, model->weight, model->bias});
      all.insert(all.end(), out.begin(), out.end());
      return all;
    };
    for (bool cast : {true, false, true}) {
      Tensors want = gradients(fn, cast), got = gradients([&](const Tensors& in) { return fast(in); }, cast);
      for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(same_tensor(got[i], want[i])) << i;
    }
  }
}

TEST(TracedModes, AutocastInside) {
  compare(
      [](const Tensors& in) {
        at::Tensor half;
        {
          Autocast autocast(at::kBFloat16);
          half = in[0].mm(in[1]);
        }
        return Tensors{half, half.to(at::kFloat).mm(in[1])};
      },
      leaves({{3, 3}, {3, 3}}, {true, true}));
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

TEST(TracedModes, DefaultDtype) {
  torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
  compare(
      [](const Tensors& in) {
        return Tensors{torch::ones({3}) * in[0], torch::arange(3) / 2, in[0] * 1.5,
                       torch::tensor({1.5, 2.5, 3.5}) + in[0]};
      },
      leaves({{3}}, {true}));
  torch::set_default_dtype(caffe2::TypeMeta::Make<float>());
}

// ---- hooks

TEST(TracedHooks, OnTensorsInside) {
  compare(
      [](const Tensors& in) {
        at::Tensor y = in[0] * 2;
        y.register_hook([](at::Tensor gradient) { return gradient.sin() * 3; });
        return Tensors{y * in[1], y.exp()};
      },
      leaves({{3}, {3}}, {true, true}));
}

TEST(TracedHooks, OnAnInputInside) {
  compare(
      [](const Tensors& in) {
        in[0].register_hook([](at::Tensor gradient) { return gradient * 5; });
        return Tensors{in[0] * in[0]};
      },
      non_leaves({{3}}, {true}), {.compiled = false, .write_outputs = false});
}

TEST(TracedHooks, OnParametersOutside) {
  torch::nn::Linear model(2, 2);
  int calls = 0;
  model->weight.register_hook([&](at::Tensor gradient) {
    ++calls;
    return gradient * 2;
  });
  Compiled fast([&](const Tensors& in) { return Tensors{model(in[0])}; }, {});
  at::Tensor x = leaf({3, 2});
  fast({x})[0].sum().backward();
  EXPECT_EQ(calls, 1);
  at::Tensor got = model->weight.grad().clone();
  model->zero_grad();
  model(x).sum().backward();
  EXPECT_TRUE(same_values(got, model->weight.grad()));
  EXPECT_EQ(calls, 2);
}

TEST(TracedHooks, ReadACapturedTensorWhenTheBackwardRuns) {
  at::Tensor factor = torch::full({3}, 4.f);
  const Callable fn = [&](const Tensors& in) {
    at::Tensor y = in[0] * 2;
    y.register_hook([&](at::Tensor gradient) { return gradient * factor; });
    return Tensors{y.sum()};
  };
  compare(fn, leaves({{3}}, {true}), {.compiled = false});
  Compiled fast(fn, {});
  for (float value : {5.f, 6.f}) {
    const at::Tensor x = leaf({3}), out = fast({x})[0];
    factor = torch::full({3}, value);
    out.backward();
    EXPECT_TRUE(same_values(x.grad(), torch::full({3}, value * 2)));
  }
}

// ---- gradients taken inside

TEST(TracedGradients, OfAnIntermediate) {
  compare(
      [](const Tensors& in) {
        at::Tensor x = in[0].detach().requires_grad_();
        at::Tensor energy = (x * in[1]).sin().sum();
        at::Tensor force = torch::autograd::grad({energy}, {x}, {}, true, true)[0];
        return Tensors{energy, force};
      },
      leaves({{3}, {3}}, {true, true}));
}

TEST(TracedGradients, OfAnArgument) {
  compare(
      [](const Tensors& in) {
        at::Tensor energy = in[0].exp().sum();
        return Tensors{torch::autograd::grad({energy}, {in[0]}, {}, true, true)[0].square(), energy};
      },
      leaves({{3}}, {true}));
}

TEST(TracedGradients, ThatAreNotDifferentiatedAgain) {
  compare([](const Tensors& in) { return Tensors{torch::autograd::grad({in[0].exp().sum()}, {in[0]})[0]}; },
          leaves({{3}}, {true}));
}

TEST(TracedGradients, BackwardInsideIsAsInEagerOrRefused) {
  Callable fn = [](const Tensors& in) {
    in[0].exp().sum().backward();
    return Tensors{in[0] * 2};
  };
  Compiled fast(fn, {});
  at::Tensor a = torch::ones(3).requires_grad_(), b = torch::ones(3).requires_grad_();
  fn({b});
  std::string failure = test::message<Error>([&] { fast({a}); });
  if (failure.empty()) {
    EXPECT_TRUE(same_values(a.grad(), b.grad()));
  } else {
    EXPECT_FALSE(a.grad().defined());
  }
}

}  // namespace
}  // namespace tandem
