// Hooks and retained gradients: around a compiled function, and inside it.
#include "runtime/compare.h"

#include <torch/csrc/autograd/function_hook.h>

namespace tandem {
namespace {

using test::leaf;
using test::same_values;

/// What `scene` returns with the function as it is and compiled: equal, bit by bit, at the first call and at
/// later ones.
void expect_alike(const Callable& fn, const std::function<Tensors(const Callable&)>& scene,
                  bool compiled = true) {
  for (bool keep : {true, false}) {
    SCOPED_TRACE(keep ? "writes kept" : "writes returned");
    std::string reason;
    Compiled fast(fn, {.keep_input_mutations = keep});
    auto run = [&](const Callable& f) {
      torch::manual_seed(3);
      return scene(f);
    };
    for (int call = 0; call < 2; ++call) {
      Tensors want = run(fn), got = run([&](const Tensors& in) {
                                if (compiled) reason += fast.explain(in).eager_reason;
                                return fast(in);
                              });
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(same_values(got[i], want[i])) << "tensor " << i << " of call " << call;
    }
    EXPECT_EQ(reason, "");
  }
}

Tensors product(const Tensors& in) { return {in[0].sin() * in[1], in[0].exp()}; }

// Where gradients come from the function and from beside it: a call boundary adds them in another order, and
// small whole numbers do not mind.
Tensors whole_product(const Tensors& in) { return {in[0] * in[1], in[0].square()}; }
at::Tensor whole(at::IntArrayRef sizes) {
  return torch::randint(-4, 5, sizes).to(at::kFloat).requires_grad_();
}

at::Tensor as_tensor(int number) { return torch::full({}, double(number)); }

// ---- outside

TEST(Hooks, OnLeavesRunOnceOnTheWholeGradient) {
  expect_alike(whole_product, [](const Callable& f) {
    at::Tensor a = whole({3}), b = whole({3});
    int calls = 0;
    a.register_hook([&](at::Tensor g) {
      ++calls;
      return g * g;
    });
    Tensors out = f({a, b});
    (out[0].sum() + out[1].sum() + (a * 3).sum()).backward();
    return Tensors{a.grad(), b.grad(), as_tensor(calls)};
  });
}

TEST(Hooks, OnOutputsInTheOrderInWhichTheyWereRegistered) {
  expect_alike(product, [](const Callable& f) {
    at::Tensor a = leaf({3}), b = leaf({3});
    Tensors out = f({a, b});
    out[0].register_hook([](at::Tensor g) { return g + 1; });
    out[0].register_hook([](at::Tensor g) { return g * 2; });
    out[1].register_hook([](at::Tensor g) { return g * g; });
    (out[0].sum() + out[1].sum()).backward();
    return Tensors{a.grad(), b.grad()};
  });
}

TEST(Hooks, OnInputsThatNoOutputLeadsToDoNotRun) {
  expect_alike([](const Tensors& in) { return Tensors{in[0].sin() + in[1].detach()}; },
               [](const Callable& f) {
                 at::Tensor x = leaf({3}), read = leaf({3}), unread = leaf({3});
                 int runs = 0;
                 for (at::Tensor& other : {std::ref(read), std::ref(unread)})
                   other.register_hook([&](const at::Tensor&) { ++runs; });
                 f({x, read, unread})[0].sum().backward();
                 return Tensors{x.grad(), as_tensor(runs),
                                as_tensor(read.grad().defined() || unread.grad().defined())};
               });
}

TEST(Hooks, ThatWereRemovedDoNotRun) {
  expect_alike(product, [](const Callable& f) {
    at::Tensor a = leaf({3}), x = a * 2, b = leaf({3});
    auto on_input = x.register_hook([](at::Tensor g) { return g * 5; });
    auto on_leaf = b.register_hook([](at::Tensor g) { return g * 7; });
    Tensors out = f({x, b});
    auto on_output = out[0].register_hook([](at::Tensor g) { return g * 11; });
    out[0].register_hook([](at::Tensor g) { return g * 13; });
    out[0].sum().backward({}, /*retain_graph=*/true);
    at::Tensor before = a.grad().clone();
    x.remove_hook(on_input);
    b.remove_hook(on_leaf);
    out[0].remove_hook(on_output);
    out[0].sum().backward();
    return Tensors{before, a.grad(), b.grad()};
  });
}

TEST(Hooks, MayReplaceNothingAndSeeTheGradient) {
  expect_alike(product, [](const Callable& f) {
    at::Tensor a = leaf({3}), b = leaf({3}), seen;
    Tensors out = f({a, b});
    out[0].register_hook([&](at::Tensor g) { seen = g.clone(); });
    out[0].sum().backward();
    return Tensors{a.grad(), seen};
  });
}

struct AfterAccumulation : torch::autograd::PostAccumulateGradHook {
  std::function<void(const at::Tensor&)> work;
  explicit AfterAccumulation(std::function<void(const at::Tensor&)> w) : work(std::move(w)) {}
  void operator()(const at::Tensor& tensor) override { work(tensor); }
};

void after_accumulation(const at::Tensor& leaf, std::function<void(const at::Tensor&)> work) {
  torch::autograd::impl::set_post_acc_grad_hooks(leaf, std::make_unique<AfterAccumulation>(std::move(work)));
}

TEST(Hooks, BehindTheAccumulationOnInputsAndParameters) {
  at::Tensor weight;
  expect_alike([&](const Tensors& in) { return Tensors{in[0] * weight}; },
               [&](const Callable& f) {
                 at::Tensor a = leaf({3}), mine = leaf({3});
                 weight = mine;
                 int calls = 0;
                 for (const at::Tensor& t : {a, mine})
                   after_accumulation(t, [&](const at::Tensor& t) {
                     ++calls;
                     t.mutable_grad() = t.grad() * 2;
                   });
                 f({a})[0].sum().backward();
                 f({a})[0].sum().backward();
                 return Tensors{a.grad(), mine.grad(), as_tensor(calls)};
               });
}

/// The optimiser runs inside the backward and frees each gradient at once.
TEST(Hooks, BehindTheAccumulationMayStepAndDropTheGradient) {
  at::Tensor weight;
  expect_alike([&](const Tensors& in) { return Tensors{(in[0] * weight).tanh()}; },
               [&](const Callable& f) {
                 at::Tensor mine = leaf({3});
                 weight = mine;
                 after_accumulation(mine, [](const at::Tensor& t) {
                   torch::NoGradGuard no_grad;
                   at::Tensor(t).sub_(t.grad() * 0.5);
                   t.mutable_grad() = at::Tensor();
                 });
                 for (int i = 0; i < 4; ++i) f({torch::full(3, 1. + i)})[0].sum().backward();
                 return Tensors{mine.detach(), mine.grad()};
               });
}

// ---- retained gradients

TEST(RetainGrad, OnOutputsOutside) {
  expect_alike(product, [](const Callable& f) {
    at::Tensor a = leaf({3}), b = leaf({3});
    Tensors out = f({a, b});
    for (const at::Tensor& o : out) o.retain_grad();
    out[0].register_hook([](at::Tensor g) { return g * 3; });
    (out[0].sum() * 2 + out[1].square().sum()).backward({}, true);
    out[0].sum().backward();
    return Tensors{out[0].grad(), out[1].grad(), a.grad(), b.grad()};
  });
}

TEST(RetainGrad, OnInputsThatAreNoLeaves) {
  expect_alike(whole_product, [](const Callable& f) {
    at::Tensor a = whole({3}), x = a * 2, y = x + 1;
    x.retain_grad();
    y.retain_grad();
    Tensors out = f({x, y});
    (out[0].sum() + out[1].sum() + x.square().sum()).backward();
    return Tensors{x.grad(), y.grad(), a.grad()};
  });
}

TEST(RetainGrad, OnViewsAmongOutputs) {
  expect_alike(
      [](const Tensors& in) {
        at::Tensor y = in[0].sin();
        return Tensors{y, y.view({3, 1}), in[0].view({1, 3})};
      },
      [](const Callable& f) {
        at::Tensor a = leaf({3}), x = a * 2;
        Tensors out = f({x});
        for (const at::Tensor& o : out) o.retain_grad();
        (out[0].sum() + out[1].square().sum() + out[2].exp().sum()).backward();
        return Tensors{out[0].grad(), out[1].grad(), out[2].grad(), a.grad()};
      });
}

TEST(RetainGrad, OfAnOutputInsideTheFunction) {
  expect_alike(
      [](const Tensors& in) {
        at::Tensor y = in[0].sin() * in[1];
        y.retain_grad();
        return Tensors{y, in[0] + 1};
      },
      [](const Callable& f) {
        at::Tensor a = leaf({3}), b = leaf({3});
        Tensors out = f({a, b});
        out[0].square().sum().backward({}, true);
        (out[0].sum() + out[1].sum()).backward();
        return Tensors{out[0].grad(), a.grad(), b.grad(), as_tensor(out[0].retains_grad()),
                       as_tensor(out[1].retains_grad())};
      });
}

TEST(RetainGrad, OfAnInputInsideTheFunction) {
  expect_alike(
      [](const Tensors& in) {
        in[0].retain_grad();
        return Tensors{in[0] * 3};
      },
      [](const Callable& f) {
        at::Tensor a = whole({3}), x = a * 2, y = f({x})[0];
        (y.square().sum() + x.square().sum()).backward();
        return Tensors{x.grad(), a.grad(), as_tensor(x.retains_grad())};
      });
}

TEST(RetainGrad, OfAnIntermediateInsideTheFunctionIsSeenByNobody) {
  expect_alike(
      [](const Tensors& in) {
        at::Tensor middle = in[0].sin();
        middle.retain_grad();
        return Tensors{middle * in[1], middle.exp()};
      },
      [](const Callable& f) {
        at::Tensor a = leaf({3}), b = leaf({3});
        Tensors out = f({a, b});
        // Several combinations of tangents, so that several backwards are recorded of the one forward.
        out[0].sum().backward({}, true);
        out[1].sum().backward({}, true);
        (out[0].sum() + out[1].sum()).backward();
        return Tensors{a.grad(), b.grad()};
      });
}

Tensors retained_inside(const Callable& f) {
  at::Tensor a = whole({3}), b = whole({3}), x = a * 2;
  Tensors out = f({x, b});
  (out[0].sum() + out[1].square().sum()).backward();
  return Tensors{out[0].grad(), a.grad(), b.grad()};
}

TEST(RetainGrad, InsideOfWhatOthersAreComputedFrom) {
  const std::vector<std::function<Tensors(const Tensors&)>> programs = {
      [](const Tensors& in) {
        at::Tensor y = in[0] * 2;
        y.retain_grad();
        return Tensors{y, y * in[1]};
      },
      [](const Tensors& in) {
        at::Tensor v = (in[0] * 2).view({3, 1});
        v.retain_grad();
        return Tensors{v, v.view({3}) * in[1]};
      },
      [](const Tensors& in) {
        at::Tensor v = (in[0] * 2)[1];
        v.retain_grad();
        return Tensors{v, v * in[1]};
      },
      [](const Tensors& in) {
        in[0].mul_(in[1]);
        in[0].retain_grad();
        return Tensors{in[0], in[0] * in[1]};
      }};
  for (const auto& program : programs) expect_alike(program, retained_inside);
}

TEST(RetainGrad, InsideOfAViewOfAnInputThatOthersAreComputedFromRunsAsItIs) {
  expect_alike(
      [](const Tensors& in) {
        at::Tensor v = in[0].view({3, 1});
        v.retain_grad();
        return Tensors{v, v.view({3}) * in[1]};
      },
      retained_inside,
      /*compiled=*/false);
}

TEST(RetainGrad, InsideOfATensorAndItsViewsIsCompiled) {
  expect_alike(
      [](const Tensors& in) {
        at::Tensor y = in[0] * in[1];
        y.retain_grad();
        return Tensors{y, y.view({3, 1}), in[0] + in[1]};
      },
      [](const Callable& f) {
        at::Tensor a = whole({3}), b = whole({3});
        Tensors out = f({a, b});
        (out[0].sum() + out[1].square().sum() + out[2].sum()).backward();
        return Tensors{out[0].grad(), a.grad(), b.grad()};
      });
}

// ---- inside

TEST(Hooks, InsideOnAnIntermediate) {
  expect_alike(
      [](const Tensors& in) {
        at::Tensor middle = in[0] * 2, y = middle.sin() + middle;
        middle.register_hook([](at::Tensor g) { return g * g; });
        return Tensors{y, middle.exp()};
      },
      [](const Callable& f) {
        at::Tensor a = leaf({3});
        Tensors out = f({a});
        out[0].register_hook([](at::Tensor g) { return g * 3; });
        (out[0].square().sum() + out[1].sum()).backward();
        return Tensors{a.grad()};
      });
}

TEST(Hooks, InsideOnAnOutputRunBeforeThoseOutside) {
  expect_alike(
      [](const Tensors& in) {
        at::Tensor y = in[0] * 2;
        y.register_hook([](at::Tensor g) { return g + 1; });
        return Tensors{y};
      },
      [](const Callable& f) {
        at::Tensor a = leaf({3}), y = f({a})[0];
        y.register_hook([](at::Tensor g) { return g * 3; });
        y.retain_grad();
        y.square().sum().backward();
        return Tensors{a.grad(), y.grad()};
      },
      /*compiled=*/false);
}

TEST(Hooks, InsideAndRemovedInside) {
  expect_alike(
      [](const Tensors& in) {
        at::Tensor middle = in[0] * 2;
        auto gone = middle.register_hook([](at::Tensor g) { return g * 100; });
        middle.register_hook([](at::Tensor g) { return g * 3; });
        middle.remove_hook(gone);
        return Tensors{middle.sin()};
      },
      [](const Callable& f) {
        at::Tensor a = leaf({3});
        f({a})[0].sum().backward();
        return Tensors{a.grad()};
      });
}

/// In eager the hook belongs to the tensor from then on, and sees what comes from elsewhere as well.
TEST(Hooks, InsideOnAnInputBelongToTheInput) {
  for (bool is_leaf : {true, false}) {
    SCOPED_TRACE(is_leaf ? "leaf" : "no leaf");
    expect_alike(
        [](const Tensors& in) {
          in[0].register_hook([](at::Tensor g) { return g * g; });
          return Tensors{in[0].sin()};
        },
        [&](const Callable& f) {
          at::Tensor a = leaf({3}), x = is_leaf ? a : a * 2;
          (f({x})[0].sum() + x.exp().sum()).backward();
          at::Tensor first = a.grad().clone();
          f({x})[0].sum().backward({}, true);
          return Tensors{first, a.grad()};
        },
        /*compiled=*/false);
  }
}

// ---- detach

TEST(Detach, InsideAndOutside) {
  expect_alike(
      [](const Tensors& in) {
        at::Tensor fixed = in[0].detach() * in[1];
        return Tensors{fixed * in[0], in[0].sin().detach(), fixed};
      },
      [](const Callable& f) {
        at::Tensor a = leaf({3}), b = leaf({3});
        Tensors out = f({a * 1, b});
        Tensors again = f({out[0].detach(), b});
        (out[0].sum() + out[2].sum() + again[0].sum()).backward();
        return Tensors{a.grad(), b.grad(), as_tensor(out[1].requires_grad()),
                       as_tensor(again[1].requires_grad())};
      });
}

TEST(Detach, AnOutputInPlace) {
  expect_alike(product, [](const Callable& f) {
    at::Tensor a = leaf({3}), b = leaf({3});
    Tensors out = f({a, b});
    out[1].detach_();
    (out[0].sum() + out[1].sum()).backward();
    return Tensors{a.grad(), b.grad(), out[1], as_tensor(out[1].requires_grad())};
  });
}

TEST(Detach, ADetachedOutputSharesMemoryAndVersion) {
  Compiled fast(
      [](const Tensors& in) {
        at::Tensor y = in[0].exp();
        return Tensors{y, y.detach()};
      },
      {});
  at::Tensor a = leaf({3});
  Tensors out = fast({a});
  EXPECT_TRUE(out[1].is_alias_of(out[0]));
  out[1].zero_();
  EXPECT_TRUE(
      test::contains(test::message([&] { out[0].sum().backward(); }), "modified by an inplace operation"));
}

}  // namespace
}  // namespace tandem
