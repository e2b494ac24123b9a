// Where the caller's tensors, the captured ones and the results meet in unusual ways.
#include "runtime/compare.h"

namespace tandem {
namespace {

using test::compare;
using test::compare_both;
using test::contains;
using test::Expectations;
using test::leaf;
using test::leaves;
using test::Maker;
using test::message;
using test::non_leaves;
using test::same_tensor;
using test::same_values;
using test::Scene;

const std::function<Maker(bool)> square = [](bool rg) { return non_leaves({{2, 2}}, {rg}); };
const Expectations may_be_eager{.compiled = false};

TEST(Corners, SizesInPlaceThenViewsOfEverything) {
  compare_both(
      [](const Tensors& in) {
        in[0].t_();
        at::Tensor tmp = in[0] * 2;
        return Tensors{tmp.t().view({-1}), tmp.t(), in[0].unsqueeze(0)};
      },
      square, may_be_eager);
  compare_both(
      [](const Tensors& in) {
        in[0].t_();
        in[0].mul_(2);
        return Tensors{in[0], in[0].diagonal()};
      },
      square);
  compare_both(
      [](const Tensors& in) {
        in[0].unsqueeze_(0);
        in[0].squeeze_();
        return Tensors{in[0] + 1};
      },
      square);
}

TEST(Corners, AnOutputAndItsDetachedSelf) {
  compare_both(
      [](const Tensors& in) {
        at::Tensor y = in[0].exp();
        return Tensors{y, y.detach()};
      },
      square, may_be_eager);
  compare_both(
      [](const Tensors& in) {
        at::Tensor y = in[0].exp();
        return Tensors{y.detach(), y.view({-1})};
      },
      square, may_be_eager);
}

TEST(Corners, AViewMadeWithoutGradients) {
  compare_both(
      [](const Tensors& in) {
        torch::NoGradGuard no_grad;
        return Tensors{in[0].view({-1})};
      },
      square, may_be_eager);
  compare_both(
      [](const Tensors& in) {
        at::Tensor y = in[0] * 2;
        torch::NoGradGuard no_grad;
        return Tensors{y, y.view({-1})};
      },
      square, may_be_eager);
}

TEST(Corners, DetachedInPlace) {
  compare_both(
      [](const Tensors& in) {
        at::Tensor y = in[0] * 2;
        y.detach_();
        return Tensors{y * 3, in[0] + 1};
      },
      square);
  compare_both(
      [](const Tensors& in) {
        in[0].detach_();
        return Tensors{in[0] * 2};
      },
      square, may_be_eager);
}

TEST(Corners, AnExpandedArgument) {
  compare_both([](const Tensors& in) { return Tensors{in[0].exp() * 2, in[0] + 1}; },
               [](bool rg) -> Maker {
                 return [rg] {
                   Scene scene = non_leaves({{3, 1}}, {rg})();
                   scene.arguments[0] = scene.arguments[0].expand({3, 4});
                   return scene;
                 };
               });
}

TEST(Corners, ArgumentsThatLieInOneStorage) {
  auto parts = [](bool rg, auto cut) -> Maker {
    return [=] {
      Scene scene = non_leaves({{4, 4}}, {rg})();
      at::Tensor x = scene.arguments[0];
      scene.others = {x};
      scene.arguments = cut(x);
      return scene;
    };
  };
  Callable fn = [](const Tensors& in) {
    in[0].mul_(3);
    in[1].mul_(2);
    return Tensors{in[0] + in[1]};
  };
  for (bool rg : {false, true}) {
    compare(fn, parts(rg, [](at::Tensor x) { return Tensors{x.slice(0, 0, 2), x.slice(0, 2, 4)}; }));
    compare(fn, parts(rg, [](at::Tensor x) { return Tensors{x.slice(1, 0, 2), x.slice(1, 2, 4)}; }));
    compare(fn, parts(rg, [](at::Tensor x) { return Tensors{x.slice(0, 0, 3), x.slice(0, 1, 4)}; }),
            {.together = false});
  }
}

TEST(Corners, AnArgumentThatIsAlsoCaptured) {
  at::Tensor w = leaf({3});
  Callable fn = [&](const Tensors& in) { return Tensors{in[0] * w.sin()}; };
  Compiled fast(fn, {});
  for (const at::Tensor& argument : {w, leaf({3}), w}) {
    at::Tensor got = fast({argument})[0];
    EXPECT_TRUE(same_values(got, fn({argument})[0]));
    EXPECT_TRUE(same_values(torch::autograd::grad({got.sum()}, {w})[0],
                            torch::autograd::grad({fn({argument})[0].sum()}, {w})[0]));
  }
}

TEST(Corners, AnArgumentThatSharesMemoryWithACaptureInALaterCall) {
  at::Tensor table = torch::ones({4});
  Callable fn = [&](const Tensors& in) {
    in[0].mul_(2);
    return Tensors{table + in[0]};
  };
  Compiled fast(fn, {});
  fast({torch::ones(4)});
  EXPECT_TRUE(same_values(fast({table.view({4})})[0], torch::full({4}, 4.f)));
  EXPECT_TRUE(same_values(table, torch::full({4}, 2.f)));
}

TEST(Corners, ManyArgumentsOfWhichTwoComeToBeOne) {
  Callable fn = [](const Tensors& in) {
    in[3].add_(1);
    at::Tensor sum = in[0];
    for (size_t i = 1; i < in.size(); ++i) sum = sum * 2 + in[i];
    return Tensors{sum};
  };
  Compiled fast(fn, {});
  auto arguments = [](bool repeated) {
    Tensors all;
    for (int i = 0; i < 12; ++i) all.push_back(torch::full({2}, float(i)));
    if (repeated) all[9] = all[3];
    return all;
  };
  for (bool repeated : {false, true, false})
    EXPECT_TRUE(same_values(fast(arguments(repeated))[0], fn(arguments(repeated))[0]));
}

TEST(Corners, AGradientOfAnArgumentReadInside) {
  Callable fn = [](const Tensors& in) {
    return Tensors{in[0].grad().defined() ? in[0].detach() - in[0].grad() : in[0].detach() * 100};
  };
  Compiled fast(fn, {});
  at::Tensor a = leaf({3});
  a.mutable_grad() = torch::ones(3);
  std::string failure = message<Error>([&] { EXPECT_TRUE(same_values(fast({a})[0], fn({a})[0])); });
  EXPECT_TRUE(failure.empty() || contains(failure, "grad")) << failure;
}

TEST(Corners, AnOptimiserStepOnCapturedParameters) {
  torch::nn::Linear plain(2, 2), twin(2, 2);
  torch::NoGradGuard no_grad;
  for (size_t i = 0; i < 2; ++i) twin->parameters()[i].copy_(plain->parameters()[i]);
  auto update = [](torch::nn::Linear& model) {
    for (at::Tensor& p : model->parameters())
      if (p.grad().defined()) p.sub_(p.grad() * 0.1);
  };
  Compiled fast(
      [&](const Tensors&) {
        update(twin);
        return Tensors{};
      },
      {});
  for (int step = 0; step < 3; ++step) {
    at::Tensor x = torch::randn({3, 2});
    for (torch::nn::Linear* model : {&plain, &twin}) {
      torch::AutoGradMode enabled(true);
      (*model)->zero_grad();
      (*model)(x).square().sum().backward();
    }
    update(plain);
    fast({});
    for (size_t i = 0; i < 2; ++i)
      EXPECT_TRUE(same_values(twin->parameters()[i], plain->parameters()[i])) << step;
  }
}

TEST(Corners, HooksAndRetainedGradientsOutside) {
  Callable fn = [](const Tensors& in) { return Tensors{in[0].sin() * in[0]}; };
  Compiled fast(fn, {});
  auto run = [](const Callable& f) {
    torch::manual_seed(4);
    at::Tensor a = leaf({3}), x = a * 2;
    x.register_hook([](at::Tensor g) { return g * 3; });
    at::Tensor y = f({x})[0];
    y.retain_grad();
    y.register_hook([](at::Tensor g) { return g + 1; });
    y.sum().backward();
    return Tensors{a.grad(), y.grad()};
  };
  Tensors want = run(fn), got = run([&](const Tensors& in) { return fast(in); });
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_values(got[i], want[i])) << i;
}

TEST(Corners, AnUnusedInputIsEagersErrorUnlessAllowed) {
  Callable fn = [](const Tensors& in) { return Tensors{in[0] * 2}; };
  Compiled fast(fn, {});
  at::Tensor a = leaf({3}), b = leaf({3});
  for (const Callable& f : {fn, Callable([&](const Tensors& in) { return fast(in); })}) {
    EXPECT_ANY_THROW(torch::autograd::grad({f({a, b})[0].sum()}, {b}));
    EXPECT_FALSE(torch::autograd::grad({f({a, b})[0].sum()}, {b}, {}, false, false, true)[0].defined());
  }
}

TEST(Corners, ABackwardThatFailsToCompileCanBeTriedAgain) {
  bool works = false;
  Compiled fast([](const Tensors& in) { return Tensors{in[0].sin()}; },
                {.bw_compiler = Compiler([&](const Graph& graph, const CompileContext& context) {
                   if (!works) throw std::runtime_error("no backward today");
                   return find_backend("eager")->compile(graph, context);
                 })});
  at::Tensor a = leaf({3}), y = fast({a})[0].sum();
  EXPECT_TRUE(contains(message([&] { y.backward(); }), "no backward today"));
  works = true;
  y.backward();
  EXPECT_TRUE(same_values(a.grad(), a.detach().cos()));
}

TEST(Corners, ANonDifferentiableFunctionIsEagersErrorAtTheBackward) {
  Callable fn = [](const Tensors& in) { return Tensors{at::_cholesky_solve_helper(in[0], in[1], false)}; };
  Compiled fast(fn, {});
  at::Tensor a = leaf({2, 1}), b = torch::eye(2);
  at::Tensor want = fn({a, b})[0], got = fast({a, b})[0];
  EXPECT_TRUE(same_tensor(got, want));
  EXPECT_EQ(message([&] { want.sum().backward(); }).empty(), message([&] { got.sum().backward(); }).empty());
}

TEST(Corners, IntegersBooleansAndHalves) {
  Callable fn = [](const Tensors& in) {
    return Tensors{in[0] > 0, in[0].argmax(), in[0].to(at::kHalf), in[0].to(at::kLong),
                   (in[0] > 0).to(at::kFloat) * in[0]};
  };
  compare(fn, leaves({{4}}, {true}), {.write_outputs = false});
}

TEST(Corners, TheSameTensorTwiceAmongTheOutputs) {
  compare_both(
      [](const Tensors& in) {
        at::Tensor y = in[0] * 2;
        return Tensors{y, y, in[0], in[0]};
      },
      square);
}

}  // namespace
}  // namespace tandem
