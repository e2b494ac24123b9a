// Gradients of gradients: the ways to ask for them, what is refused, and what is noticed.
#include "runtime/orders.h"

namespace tandem {
namespace {

using namespace test::higher;
using test::contains;
using test::counter;
using test::message;

const Callable mixed = [](const Tensors& in) { return Tensors{(in[0] * in[1]).tanh(), in[0].sin() * in[2]}; };

TEST(HigherOrder, HessianVectorProduct) {
  expect_same(mixed, {{3}, {3}, {3}}, [](const Callable& f, const Tensors& in) {
    at::Tensor v = torch::randn({3}, f64);
    at::Tensor g = grad(f(in)[0].sum() + f(in)[1].sum(), {in[0]})[0];
    return grad((g * v).sum(), in, false);
  });
}

TEST(HigherOrder, OneOfTwoOutputsIsUsed) {
  for (size_t which : {0, 1})
    expect_same(mixed, {{3}, {3}, {3}}, [&](const Callable& f, const Tensors& in) {
      Tensors first = grad(f(in)[which].sum(), in);
      Tensors all = first;
      for (at::Tensor& g : grad(fold(first, false), in)) all.push_back(g);
      return all;
    });
}

TEST(HigherOrder, ByAnInputThatTheFirstGradientWasNotTakenOf) {
  expect_same(mixed, {{3}, {3}, {3}}, [](const Callable& f, const Tensors& in) {
    at::Tensor g = grad(f(in)[0].sum(), {in[0]})[0];
    return grad(g.sum(), {in[1]}, false);
  });
}

TEST(HigherOrder, ByATangent) {
  expect_same(mixed, {{3}, {3}, {3}, {3}}, [](const Callable& f, const Tensors& in) {
    Tensors first = torch::autograd::grad({f({in[0], in[1], in[2]})[0]}, {in[0]}, {in[3]}, true, true);
    Tensors second = grad(first[0].pow(2).sum(), {in[3], in[0]});
    Tensors third = grad(second[0].sum() + second[1].sin().sum(), {in[3], in[0], in[1]}, false);
    return Tensors{first[0], second[0], second[1], third[0], third[1], third[2]};
  });
}

TEST(HigherOrder, ATangentThatIsItselfTheGradientKeepsItsHistory) {
  expect_same([](const Tensors& in) { return Tensors{in[0] + in[1]}; }, {{3}, {3}, {3}},
              [](const Callable& f, const Tensors& in) {
                Tensors g =
                    torch::autograd::grad({f({in[0], in[1]})[0]}, {in[0], in[1]}, {in[2]}, true, true);
                EXPECT_TRUE(in[2].is_leaf());
                return grad(g[0].pow(2).sum() + g[1].sin().sum(), {in[2]}, false);
              });
}

TEST(HigherOrder, AJacobianByForwardModeOutOfTwoBackwards) {
  expect_same(mixed, {{3}, {3}, {3}}, [](const Callable& f, const Tensors& in) {
    at::Tensor u = torch::zeros({3}, f64).requires_grad_(), v = torch::randn({3}, f64);
    at::Tensor g = torch::autograd::grad({f(in)[0]}, {in[0]}, {u}, true, true)[0];
    return torch::autograd::grad({g}, {u}, {v});
  });
}

TEST(HigherOrder, TangentsOfOtherLayouts) {
  expect_same([](const Tensors& in) { return Tensors{(in[0].t() + 1).exp()}; }, {{3, 4}},
              [](const Callable& f, const Tensors& in) {
                Tensors all;
                for (const at::Tensor& tangent :
                     {torch::randn({3, 4}, f64).t(), torch::ones({}, f64).expand({4, 3})}) {
                  at::Tensor g = torch::autograd::grad({f(in)[0]}, {in[0]}, {tangent}, true, true)[0];
                  all.push_back(torch::autograd::grad({g}, {in[0]}, {torch::randn({4, 3}, f64).t()})[0]);
                }
                return all;
              });
}

TEST(HigherOrder, GradientPenaltyTrainsAModule) {
  auto run = [](bool compiled) {
    torch::manual_seed(1);
    torch::nn::Sequential net(torch::nn::Linear(4, 8), torch::nn::Tanh(),
                              torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})),
                              torch::nn::Linear(8, 1));
    net->to(torch::kDouble);
    Callable plain = [net](const Tensors& in) mutable { return Tensors{net->forward(in[0])}; };
    Compiled fast(plain, {.watch = {net.ptr()}});
    torch::optim::SGD optimizer(net->parameters(), 0.05);
    Tensors losses;
    uint64_t compiled_then = 0;
    for (int step = 0; step < 4; ++step) {
      if (step == 1)
        compiled_then =
            counter("compile_higher_order") + counter("compile_backward") + counter("joint_trace");
      at::Tensor x = double_leaf({6, 4}), y = compiled ? fast({x})[0] : plain({x})[0];
      at::Tensor slope = grad(y.sum(), {x})[0];
      at::Tensor loss = y.pow(2).mean() + (slope.norm(2, 1) - 1).pow(2).mean();
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      losses.push_back(loss.detach());
    }
    EXPECT_EQ(counter("compile_higher_order") + counter("compile_backward") + counter("joint_trace"),
              compiled_then);
    for (const at::Tensor& p : net->parameters()) losses.push_back(p.grad());
    return losses;
  };
  uint64_t before = counter("compile_higher_order");
  Tensors want = run(false), got = run(true);
  EXPECT_GT(counter("compile_higher_order"), before);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) expect_close(got[i], want[i], std::to_string(i));
}

TEST(HigherOrder, ACompiledModule) {
  torch::manual_seed(1);
  torch::nn::Linear layer(3, 3);
  layer->to(torch::kDouble);
  auto fast = compile(layer, {});
  auto penalty = [&](auto&& call) {
    at::Tensor x = torch::ones({2, 3}, f64).requires_grad_();
    at::Tensor slope = grad(call(x).sin().sum(), {x})[0];
    return grad(slope.pow(2).sum(), {layer->weight, layer->bias, x}, false);
  };
  Tensors want = penalty([&](const at::Tensor& x) { return layer(x); }),
          got = penalty([&](const at::Tensor& x) { return at::Tensor(fast(x)); });
  for (size_t i = 0; i < 3; ++i) expect_close(got[i], want[i], std::to_string(i));
}

TEST(HigherOrder, OneCompiledFunctionOnTheGradientOfAnother) {
  Callable inner = [](const Tensors& in) { return Tensors{(in[0] * in[1]).sin()}; },
           outer = [](const Tensors& in) { return Tensors{in[0].pow(3) * in[1]}; };
  Compiled fast_inner(inner, {}), fast_outer(outer, {});
  auto run = [&](const auto& f, const auto& g) {
    torch::manual_seed(1);
    at::Tensor a = double_leaf({3}), b = double_leaf({3});
    at::Tensor slope = grad(f({a, b})[0].sum(), {a})[0];
    at::Tensor again = grad(g({slope, b})[0].sum(), {a})[0];
    return grad(f({again, a})[0].sum(), {a, b}, false);
  };
  Tensors want = run(inner, outer), got = run(fast_inner, fast_outer);
  for (size_t i = 0; i < 2; ++i) expect_close(got[i], want[i], std::to_string(i));
}

TEST(HigherOrder, AGradientTakenInsideAndOneOutside) {
  expect_orders(
      [](const Tensors& in) {
        at::Tensor x = in[0] * 1, y = (x.tanh() * in[1]).sum();
        at::Tensor slope = torch::autograd::grad({y}, {x}, {}, true, /*create_graph=*/true)[0];
        return Tensors{slope * in[1] + y};
      },
      {{3}, {3}}, 3);
}

TEST(HigherOrder, HooksInsideAreRefused) {
  auto f = compile([](const Tensors& in) {
    at::Tensor b = in[0].sin();
    b.register_hook([](at::Tensor g) { return g * g; });
    return Tensors{b * in[0]};
  });
  at::Tensor x = at::rand({3}, at::kDouble).requires_grad_();
  at::Tensor y = f({x})[0].sum();
  EXPECT_THROW(torch::autograd::grad({y}, {x}, {}, true, true), UnsupportedError);
  EXPECT_TRUE(torch::autograd::grad({y}, {x})[0].defined());
}

TEST(HigherOrder, RegionsWithoutGrad) {
  expect_orders(
      [](const Tensors& in) {
        at::Tensor a = in[0] * in[1];
        {
          at::NoGradGuard no_grad;
          a = a * in[0].exp().sum();
        }
        at::Tensor b = in[0].sin() * in[1];
        return Tensors{a.detach() * in[0] * b};
      },
      {{3}, {3}}, 3);
}

TEST(HigherOrder, AfterTheGraphWasRetainedManyTimes) {
  expect_same(mixed, {{3}, {3}, {3}}, [](const Callable& f, const Tensors& in) {
    at::Tensor y = f(in)[0].sin().sum();
    at::Tensor g = grad(y, {in[0]})[0];
    Tensors all;
    for (int i = 0; i < 3; ++i) all.push_back(grad(g.sum(), {in[0]}, i == 1)[0]);
    at::Tensor again = grad(y, {in[0]})[0];
    all.push_back(grad(again.sum(), {in[1]}, false)[0]);
    (again * g).sum().backward();
    all.push_back(in[0].grad());
    return all;
  });
}

TEST(HigherOrder, ASecondBackwardWithoutRetainingIsEagersError) {
  Compiled fast(mixed, {});
  Tensors in = {double_leaf({3}), double_leaf({3}), double_leaf({3})};
  auto twice = [&](const auto& f) {
    at::Tensor g = grad(f(in)[0].sum(), {in[0]})[0];
    g.sum().backward();
    return message([&] { g.sum().backward(); });
  };
  EXPECT_TRUE(contains(twice(mixed), "second time"));
  EXPECT_TRUE(contains(twice(fast), "second time"));
}

// ---- custom functions

struct Cube : torch::autograd::Function<Cube> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, at::Tensor x) {
    context->save_for_backward({x});
    return x * x * x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    at::Tensor x = context->get_saved_variables()[0];
    return {gradients[0] * x * x * 3};
  }
};

/// Its gradient is a constant to whoever differentiates it again.
struct FlatCube : torch::autograd::Function<FlatCube> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, at::Tensor x) {
    return Cube::forward(context, x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    at::NoGradGuard once;
    return Cube::backward(context, gradients);
  }
};

struct CubeOnce : torch::autograd::Function<CubeOnce> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, at::Tensor x) {
    return Cube::forward(context, x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    if (at::GradMode::is_enabled()) throw std::runtime_error("a cube can be differentiated once");
    return Cube::backward(context, gradients);
  }
};

TEST(HigherOrder, CustomFunctions) {
  expect_orders([](const Tensors& in) { return Tensors{Cube::apply(in[0] * in[1])}; }, {{3}, {3}}, 4);
  expect_orders([](const Tensors& in) { return Tensors{FlatCube::apply(in[0] * in[1]) * in[0]}; }, {{3}, {3}},
                3);
}

TEST(HigherOrder, ACustomFunctionThatRefuses) {
  Callable fn = [](const Tensors& in) { return Tensors{CubeOnce::apply(in[0])}; };
  Compiled fast(fn, {});
  at::Tensor x = double_leaf({3});
  for (const Callable& f : {fn, Callable([&](const Tensors& in) { return fast(in); })}) {
    at::Tensor y = f({x})[0].sum();
    EXPECT_TRUE(contains(message([&] { grad(y, {x}); }), "a cube can be differentiated once"));
    EXPECT_TRUE(grad(y, {x}, false)[0].defined());
  }
}

// ---- what has no second derivative

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

TEST(HigherOrder, AMissingSecondDerivativeIsEagersErrorWhenItIsAskedFor) {
  Callable fn = [](const Tensors& in) {
    return Tensors{std::get<0>(at::_ctc_loss(in[0].log_softmax(2), torch::tensor({1, 2, 1, 1}).view({2, 2}),
                                             {4, 4}, {2, 2})),
                   in[1].pow(3)};
  };
  Compiled fast(fn, {});
  Tensors in = {double_leaf({4, 2, 3}), double_leaf({3})};
  auto error = [&](const auto& f) {
    Tensors out = f(in);
    Tensors g = grad(out[0].sum() + out[1].sum(), in);
    EXPECT_TRUE(g[0].requires_grad());
    Tensors fine = grad(g[1].sum(), {in[1]});
    expect_close(fine[0], (in[1] * 6), "the gradient that exists");
    return first_line(message([&] { grad(g[0].sum(), {in[0]}, false); }));
  };
  std::string want = error(fn);
  EXPECT_TRUE(contains(want, "not implemented")) << want;
  EXPECT_EQ(error(fast), want);
}

// ---- values that were written in between

TEST(HigherOrder, AWriteBetweenTheOrdersIsNoticed) {
  auto write = [](const at::Tensor& t) { t.detach().add_(1); };
  Callable fn = [](const Tensors& in) { return Tensors{in[0].exp() * in[1]}; };
  Compiled fast(fn, {});
  auto noticed = [&](const auto& f, int what) {
    Tensors in = {double_leaf({3}) + 0, double_leaf({3}) + 0};
    at::Tensor tangent = double_leaf({3}) + 0;
    at::Tensor y = f(in)[0];
    if (what == 0) write(in[1]);
    std::string error = message([&] {
      Tensors g = torch::autograd::grad({y}, in, {tangent}, true, true);
      if (what == 1) write(in[1]);
      if (what == 2) write(tangent);
      if (what == 3) write(y);
      grad(g[0].sum() + g[1].sum(), {in[0], in[1], tangent}, false);
    });
    EXPECT_TRUE(error.empty() || contains(error, "modified by an inplace operation")) << error;
    return !error.empty();
  };
  for (int what : {0, 1, 2, 3, 4}) {
    EXPECT_EQ(noticed(fn, what), what < 3) << what;
    EXPECT_EQ(noticed(fast, what), what < 3) << what;
  }
}

TEST(HigherOrder, AWriteToATangentIsNoticedThroughAView) {
  Callable fn = [](const Tensors& in) { return Tensors{in[0].exp().t()}; };
  Compiled fast(fn, {});
  auto noticed = [&](const auto& f, bool write) {
    at::Tensor x = double_leaf({3, 2}), tangent = torch::randn({2, 3}, f64);
    at::Tensor g = torch::autograd::grad({f({x})[0]}, {x}, {tangent}, true, true)[0];
    if (write) tangent.add_(1);
    return contains(message([&] { grad(g.sum(), {x}, false); }), "modified by an inplace operation");
  };
  for (bool write : {true, false}) {
    EXPECT_EQ(noticed(fn, write), write);
    EXPECT_EQ(noticed(fast, write), write);
  }
}

TEST(HigherOrder, AGradientThatIsWrittenIsNoticedWhereItWasSaved) {
  Callable fn = [](const Tensors& in) { return Tensors{in[0].exp()}; };
  Compiled fast(fn, {});
  auto noticed = [&](const auto& f) {
    at::Tensor x = double_leaf({3});
    at::Tensor g = grad(grad(f({x})[0].sum(), {x})[0].sum(), {x})[0];
    g.detach().add_(1);
    return contains(message([&] { grad(g.sum(), {x}, false); }), "modified by an inplace operation");
  };
  EXPECT_EQ(noticed(fast), noticed(fn));
}

// ---- what is kept

TEST(HigherOrder, NothingOutlivesTheGradients) {
  Compiled fast(mixed, {});
  Tensors in = {double_leaf({3}), double_leaf({3}), double_leaf({3})};
  c10::weak_intrusive_ptr<c10::TensorImpl> output(in[0].getIntrusivePtr()), gradient(in[0].getIntrusivePtr());
  {
    at::Tensor y = fast(in)[0];
    at::Tensor g = grad(y.sin().sum(), {in[0]})[0];
    output = c10::weak_intrusive_ptr<c10::TensorImpl>(y.getIntrusivePtr());
    gradient = c10::weak_intrusive_ptr<c10::TensorImpl>(g.getIntrusivePtr());
    grad(g.sum(), {in[0]}, true);
  }
  EXPECT_TRUE(output.expired());
  EXPECT_TRUE(gradient.expired());
  EXPECT_EQ(in[0].use_count(), 1u);
  EXPECT_EQ(in[0].storage().use_count(), 1u);
}

TEST(HigherOrder, LeavesTheTraceAsItWas) {
  Compiled careful([](const Tensors& in) { return Tensors{in[0].tanh()}; }, {.debug_asserts = true});
  at::Tensor x = double_leaf({3});
  const std::string key = careful.explain({x}).key;
  for (int i = 0; i < 2; ++i) grad(grad(careful({x})[0].sum(), {x})[0].sum(), {x});
  EXPECT_EQ(careful.explain({x}).key, key);
}

TEST(HigherOrder, FromManyThreads) {
  Compiled fast(mixed, {});
  torch::manual_seed(1);
  Tensors values = {torch::randn({3}, f64), torch::randn({3}, f64), torch::randn({3}, f64)};
  auto run = [&](const auto& f) {
    Tensors in;
    for (const at::Tensor& v : values) in.push_back(v.clone().requires_grad_());
    return orders([&](const Tensors& i) { return f(i); }, in, 3, true);
  };
  const Tensors want = run(mixed);
  std::vector<std::thread> threads;
  std::vector<Tensors> got(4);
  for (Tensors& mine : got) threads.emplace_back([&] { mine = run(fast); });
  for (std::thread& thread : threads) thread.join();
  for (const Tensors& mine : got)
    for (size_t i = 0; i < want.size(); ++i) expect_close(mine[i], want[i], std::to_string(i));
}

}  // namespace
}  // namespace tandem
