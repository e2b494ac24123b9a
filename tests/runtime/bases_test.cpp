// Inputs that overlap in memory which the function writes.
#include "runtime/compare.h"

namespace tandem {
namespace {

using test::compare;
using test::Maker;
using test::Scene;

Maker cut(bool requires_grad, std::function<Tensors(at::Tensor)> parts) {
  return [=] {
    Scene scene = test::non_leaves({{4, 4}}, {requires_grad})();
    scene.others = scene.arguments;
    scene.arguments = parts(scene.others[0]);
    return scene;
  };
}

Tensors two_rows(at::Tensor x) { return {x.slice(0, 0, 3), x.slice(0, 1, 4)}; }
Tensors write_second(const Tensors& in) {
  in[1].mul_(2);
  return {in[0].sin()};
}

TEST(Bases, TheGraphTakesOneInput) {
  Compiled fast(write_second, {});
  Explanation e = fast.explain(cut(true, two_rows)().arguments);
  ASSERT_EQ(e.eager_reason, "");
  EXPECT_EQ(e.forward.inputs().size(), 1u);
  ASSERT_EQ(e.contract.inputs.size(), 3u);
  EXPECT_EQ(e.contract.inputs[0].name, "memory of argument 0 and argument 1");
  EXPECT_NE(e.contract.inputs[0].write, InputWrite::None);
  EXPECT_EQ(e.contract.inputs[2].view_of, 0u);
}

TEST(Bases, NeighboursStayApart) {
  Compiled fast(
      [](const Tensors& in) {
        in[1].mul_(2);
        return Tensors{in[0].sin()};
      },
      {});
  for (bool columns : {false, true}) {
    Explanation e = fast.explain(
        cut(false, [=](at::Tensor x) { return Tensors{x.slice(columns, 0, 2), x.slice(columns, 2, 4)}; })()
            .arguments);
    EXPECT_EQ(e.eager_reason, "");
    EXPECT_EQ(e.forward.inputs().size(), 2u);
  }
}

/// A captured tensor that lies in the memory of an argument.
TEST(Bases, WithACapturedTensor) {
  for (bool rg : {false, true})
    for (bool write_captured : {false, true}) {
      Tensors base, captured;  // of eager, then compiled
      for (int world = 0; world < 2; ++world) {
        torch::manual_seed(5);
        base.push_back(test::leaf({4, 4}, rg) + 1);
        captured.push_back(base[size_t(world)].slice(0, 1, 3));
      }
      auto program = [&](size_t world) {
        return Callable([&, world](const Tensors& in) {
          (write_captured ? captured[world].slice(1, 1, 3) : in[0].slice(1, 0, 2)).mul_(3);
          return Tensors{in[0] * captured[world].sum()};
        });
      };
      Compiled fast(program(1), {});
      for (int call = 0; call < 2; ++call) {
        at::Tensor want = program(0)({base[0].slice(0, 0, 2)})[0], argument = base[1].slice(0, 0, 2);
        EXPECT_EQ(fast.explain({argument}).eager_reason, "");
        at::Tensor got = fast({argument})[0];
        EXPECT_TRUE(test::same_values(got, want));
        EXPECT_TRUE(test::same_values(base[1], base[0]));
        EXPECT_EQ(base[1].grad_fn() == nullptr, base[0].grad_fn() == nullptr);
      }
    }
}

TEST(Bases, OtherBasesAreAnotherSignature) {
  Compiled fast(write_second, {});
  auto same_as_eager = [&](const Maker& make) {
    torch::manual_seed(4);
    Scene want = make();
    torch::manual_seed(4);
    Scene got = make();
    EXPECT_TRUE(test::same_values(fast(got.arguments)[0], write_second(want.arguments)[0]));
    EXPECT_TRUE(test::same_values(got.others[0], want.others[0]));
    return test::counter("trace");
  };
  const uint64_t first = same_as_eager(cut(false, two_rows));
  EXPECT_EQ(same_as_eager(cut(false, two_rows)), first);
  EXPECT_GT(same_as_eager(cut(true, two_rows)), first);
  same_as_eager(cut(false, [](at::Tensor x) { return Tensors{x.slice(0, 0, 3), x.slice(0, 0, 3)}; }));
  same_as_eager(
      cut(false, [](at::Tensor x) { return Tensors{x.slice(0, 0, 3), x.slice(0, 1, 4).detach()}; }));
  same_as_eager(cut(false, [](at::Tensor x) { return Tensors{x.slice(0, 0, 3), x.slice(0, 1, 4).clone()}; }));
  // The same parts of a larger tensor.
  same_as_eager([] {
    at::Tensor x = torch::randn({5, 4});
    return Scene{{x.slice(0, 0, 3), x.slice(0, 1, 4)}, {}, {x}};
  });
}

TEST(Bases, ManyWays) {
  const std::vector<std::function<Tensors(at::Tensor)>> ways = {
      two_rows,
      [](at::Tensor x) { return Tensors{x, x.t()}; },
      [](at::Tensor x) { return Tensors{x.t(), x.diagonal()}; },
      [](at::Tensor x) { return Tensors{x.view({2, 8}), x.select(1, 2)}; },
      [](at::Tensor x) { return Tensors{x.slice(0, 0, 4, 2), x.slice(0, 0, 3)}; },
  };
  const std::vector<Callable> programs = {
      write_second,
      [](const Tensors& in) {
        in[0].add_(1);
        in[1].mul_(2);
        in[0].sub_(3);
        return Tensors{in[0] * 2, in[1] * 3};
      },
      [](const Tensors& in) {
        at::Tensor y = in[0] * 3;
        in[1].copy_(in[1] * 2);
        return Tensors{y + in[0], in[0], in[1].view_as(in[1])};
      },
      [](const Tensors& in) {
        in[1].unsqueeze_(0);
        in[0].mul_(2);
        return Tensors{in[1] + 1};
      },
      [](const Tensors& in) {
        {
          at::NoGradGuard no_grad;
          in[1].mul_(2);
        }
        return Tensors{in[0] * 3};
      },
      [](const Tensors& in) {
        in[0].zero_();
        return Tensors{in[1] * 3};
      },
  };
  for (size_t way = 0; way < ways.size(); ++way)
    for (size_t program = 0; program < programs.size(); ++program)
      for (bool rg : {false, true}) {
        SCOPED_TRACE("way " + std::to_string(way) + ", program " + std::to_string(program) +
                     (rg ? ", requires grad" : ""));
        compare(programs[program], cut(rg, ways[way]), {.differentiate_written = false, .together = false});
      }
}

/// The base of two that overlap is larger than both, and a third lies there.
TEST(Bases, OthersLieOnTheBase) {
  for (bool rg : {false, true}) {
    auto parts = [](at::Tensor x) { return Tensors{x.slice(0, 0, 2), x.slice(0, 3, 4), x.slice(0, 1, 2)}; };
    compare(
        [](const Tensors& in) {
          in[2].mul_(2);
          return Tensors{in[0] * 3, in[1] * 2};
        },
        cut(rg, parts), {.together = false});
    compare(
        [](const Tensors& in) {
          in[1].mul_(2);
          in[0].add_(1);
          return Tensors{in[2] * 3};
        },
        cut(rg, parts), {.together = false});
  }
}

TEST(Bases, WhatAutogradDoesNotKnowRunsAsItIs) {
  Compiled fast(write_second, {});
  Scene scene = cut(true, [](at::Tensor x) { return Tensors{x, x.detach()}; })();
  EXPECT_TRUE(
      test::contains(fast.explain(scene.arguments).eager_reason, "in a way that autograd does not know"));
  compare(write_second, cut(true, [](at::Tensor x) { return Tensors{x, x.detach()}; }), {.compiled = false});
}

/// The backward reads memory that is written after the call.
TEST(Bases, ALaterWriteIsAnError) {
  Callable fn = [](const Tensors& in) {
    in[0].mul_(2);
    return Tensors{in[1] * in[2]};
  };
  for (bool compiled : {false, true}) {
    at::Tensor x = torch::randn({4}), w = test::leaf({3});
    Tensors arguments = {x.slice(0, 0, 3), x.slice(0, 1, 4), w};
    Compiled fast(fn, {});
    at::Tensor out = compiled ? fast(arguments)[0] : fn(arguments)[0];
    x.add_(1);
    EXPECT_TRUE(
        test::contains(test::message([&] { out.sum().backward(); }), "modified by an inplace operation"))
        << compiled;
  }
}

}  // namespace
}  // namespace tandem
