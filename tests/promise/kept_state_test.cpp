// Programs that keep tensors of their own beyond a call: hidden states, caches, histories. Nothing of a trace
// may stay behind, and every call gives what eager gives.
#include "runtime/compare.h"

#include <torch/csrc/autograd/autograd.h>

namespace tandem {
namespace {

using test::contains;
using test::leaf;
using test::same_values;

/// Of the same kinds: leaves of leaves, computed tensors of computed ones.
Tensors copies_of(const Tensors& given) {
  Tensors copies;
  for (const at::Tensor& tensor : given) {
    at::Tensor copy = tensor.detach().clone().requires_grad_(tensor.requires_grad());
    copies.push_back(tensor.is_leaf() ? copy : copy * 1);
  }
  return copies;
}

/// What a sequence of calls returns, eager and compiled, each from a state of its own.
template <class Make>
void expect_same_calls(const Make& make, const std::vector<Tensors>& calls) {
  auto run = [&](bool compiled) {
    torch::manual_seed(0);
    auto state = std::make_shared<decltype(make())>(make());
    const Callable fn = [state](const Tensors& in) { return (*state)(in); };
    Compiled fast(fn, {});
    Tensors results;
    for (const Tensors& given : calls) {
      const Tensors in = copies_of(given);
      for (const at::Tensor& out : compiled ? fast(in) : fn(in)) results.push_back(out);
    }
    results.push_back(torch::rand(2));  // the generator stands where it stands in eager
    return results;
  };
  const Tensors eager = run(false), got = run(true);
  ASSERT_EQ(eager.size(), got.size());
  for (size_t i = 0; i < eager.size(); ++i)
    EXPECT_TRUE(same_values(eager[i], got[i])) << "result " << i << "\n" << eager[i] << "\n" << got[i];
}

TEST(KeptState, AHiddenStateIsCarriedOn) {
  auto make = [] {
    return [h = at::Tensor()](const Tensors& in) mutable {
      if (!h.defined()) h = torch::zeros(3);
      at::Tensor y = torch::tanh(in[0] + h);
      h = y.detach();
      return Tensors{y.sum()};
    };
  };
  expect_same_calls(make, std::vector<Tensors>(5, {torch::ones(3)}));
}

TEST(KeptState, ItIsSaidWhichTensorAndWhereItWasMade) {
  at::Tensor h = torch::zeros(3);
  Compiled fast(
      [&](const Tensors& in) {
        h = torch::tanh(in[0] + h);
        return Tensors{h.sum()};
      },
      {});
  for (int call = 0; call < 3; ++call) fast({torch::ones(3)});
  const std::string reason = fast.explain({torch::ones(3)}).eager_reason;
  EXPECT_TRUE(contains(reason, "[3]") && contains(reason, "aten::tanh")) << reason;
#ifdef TANDEM_HAVE_LIBDW
  EXPECT_TRUE(contains(reason, "kept_state_test.cpp:")) << reason;
#endif
}

TEST(KeptState, ALazilyMadeConstantIsMadeOnceAndThenCompiled) {
  auto make = [] {
    return [noise = at::Tensor()](const Tensors& in) mutable {
      if (!noise.defined()) noise = torch::randn(3);
      return Tensors{(in[0] + noise).sum()};
    };
  };
  expect_same_calls(make, std::vector<Tensors>(4, {torch::zeros(3)}));
  auto program = make();
  Compiled fast(program, {});
  for (int call = 0; call < 3; ++call) fast({torch::zeros(3)});
  EXPECT_EQ(fast.explain({torch::zeros(3)}).eager_reason, "");
}

TEST(KeptState, ACacheThatGrows) {
  auto make = [] {
    return [cosines = at::Tensor()](const Tensors& in) mutable {
      if (!cosines.defined() || cosines.size(0) < in[0].size(0))
        cosines = torch::cos(torch::arange(in[0].size(0)));
      return Tensors{(in[0] * cosines.slice(0, 0, in[0].size(0))).sum()};
    };
  };
  expect_same_calls(make, {{torch::ones(8)},
                           {torch::ones(4)},
                           {torch::ones(8)},
                           {torch::ones(16)},
                           {torch::ones(4)},
                           {torch::ones(16)}});
}

TEST(KeptState, AHistoryGrowsByOneACall) {
  auto history = std::make_shared<Tensors>();
  at::Tensor w = leaf({3});
  Compiled fast(
      [&, history](const Tensors& in) {
        at::Tensor loss = (in[0] * w).sum();
        history->push_back(loss.detach());
        return Tensors{loss};
      },
      {});
  for (int call = 0; call < 4; ++call) fast({torch::full(3, double(call))})[0].backward();
  ASSERT_EQ(history->size(), 4u);
  for (int call = 0; call < 4; ++call)
    EXPECT_TRUE(same_values((*history)[size_t(call)], (torch::full(3, double(call)) * w).sum().detach()));
}

TEST(KeptState, ALossThatIsKeptCanBeDifferentiated) {
  at::Tensor w = leaf({3}), penalty;
  Compiled fast(
      [&](const Tensors& in) {
        penalty = w.pow(2).sum();
        return Tensors{(in[0] * w).sum()};
      },
      {});
  for (int call = 0; call < 3; ++call) {
    at::Tensor loss = fast({torch::ones(3)})[0] + penalty;
    EXPECT_TRUE(same_values(torch::autograd::grad({loss}, {w})[0], torch::ones(3) + 2 * w.detach()));
  }
}

TEST(KeptState, ViewsAndTheirBases) {
  Tensors kept;
  Compiled fast(
      [&](const Tensors& in) {
        at::Tensor base = in[0] * 2;
        kept = {base, base.slice(0, 1), in[0].slice(0, 1)};
        base.add_(1);
        return Tensors{base.sum()};
      },
      {});
  at::Tensor x = torch::arange(4.f);
  for (int call = 0; call < 3; ++call) {
    fast({x});
    EXPECT_TRUE(same_values(kept[0], x * 2 + 1));
    EXPECT_TRUE(same_values(kept[1], (x * 2 + 1).slice(0, 1)));
    EXPECT_TRUE(kept[1].storage().is_alias_of(kept[0].storage()));
    EXPECT_TRUE(kept[2].storage().is_alias_of(x.storage()));
    kept[0].zero_();
    EXPECT_EQ(kept[1].sum().item<float>(), 0);
  }
}

TEST(KeptState, AnArgumentThatIsKept) {
  at::Tensor last;
  Compiled fast(
      [&](const Tensors& in) {
        at::Tensor y = last.defined() ? in[0] - last : in[0];
        last = in[0];
        return Tensors{y.sum()};
      },
      {});
  EXPECT_EQ(fast({torch::full(2, 1.f)})[0].item<float>(), 2);
  EXPECT_EQ(fast({torch::full(2, 4.f)})[0].item<float>(), 6);
  EXPECT_EQ(fast({torch::full(2, 9.f)})[0].item<float>(), 10);
}

TEST(KeptState, WritesToInputsHappenOnce) {
  Tensors kept;
  Compiled fast(
      [&](const Tensors& in) {
        in[0].add_(1);
        kept.push_back(in[0] * 2);
        return Tensors{in[0].sum()};
      },
      {});
  at::Tensor x = torch::zeros(2);
  for (int call = 1; call <= 3; ++call) {
    EXPECT_EQ(fast({x})[0].item<float>(), float(2 * call));
    EXPECT_EQ(x._version(), uint32_t(call));
  }
  ASSERT_EQ(kept.size(), 3u);
  for (int call = 1; call <= 3; ++call)
    EXPECT_TRUE(same_values(kept[size_t(call) - 1], torch::full(2, 2.f * float(call))));
}

TEST(KeptState, ARefusedTraceLeavesTensorsWithData) {
  at::Tensor h;
  auto program = [&](const Tensors& in) {
    h = torch::dropout(in[0] * 3, 0.5, true);
    return Tensors{h * h.sum().item<float>()};
  };
  torch::manual_seed(3);
  at::Tensor wanted = program({torch::ones(8)})[0];
  h = at::Tensor();
  Compiled fast(program, {});
  torch::manual_seed(3);
  EXPECT_TRUE(same_values(fast({torch::ones(8)})[0], wanted));
  EXPECT_FALSE(at::isnan(h + 1).any().item<bool>());
}

TEST(KeptState, AProgramThatFailsLeavesTensorsWithData) {
  at::Tensor h;
  Compiled fast(
      [&](const Tensors& in) {
        h = in[0] * 3;
        return Tensors{h.mm(h)};  // no matrices
      },
      {});
  EXPECT_ANY_THROW(fast({torch::ones(3)}));
  EXPECT_TRUE(same_values(h, torch::full(3, 3.f)));
}

TEST(KeptState, ExplainingLeavesEverythingAsItWas) {
  at::Tensor h = torch::zeros(2), x = torch::ones(2);
  Compiled fast(
      [&](const Tensors& in) {
        in[0].add_(1);
        h = torch::dropout(in[0], 0.5, true);
        return Tensors{h * 2};
      },
      {});
  torch::manual_seed(5);
  at::Tensor next = torch::rand(2);
  torch::manual_seed(5);
  EXPECT_TRUE(contains(fast.explain({x}).eager_reason, "keeps"));
  EXPECT_TRUE(same_values(torch::rand(2), next));
  EXPECT_TRUE(same_values(x, torch::ones(2)));
  EXPECT_EQ(x._version(), 0u);
  EXPECT_NO_THROW((h + 1).sum().item<float>());
}

// Found by random programs: the state is kept once, and the generator stands where it stands in eager.
TEST(KeptState, BesideWhatAHistoryMayHold) {
  using Step = std::function<at::Tensor(const at::Tensor& x)>;
  const std::vector<Step> steps = {
      [](const at::Tensor& x) {
        at::NoGradGuard no_grad;
        return x.slice(0, 0, 2);
      },
      [](const at::Tensor& x) {
        at::NoGradGuard no_grad;
        return x.slice(0, 1).mul_(2);
      },
      [](const at::Tensor& x) { return at::bernoulli(x, 0.5); },
      [](const at::Tensor& x) { return at::real(at::complex(x, x).conj()); },
      [](const at::Tensor& x) {
        at::Tensor y = x * 1;
        y.copy_(y);
        return y;
      },
      [](const at::Tensor& x) {
        at::Tensor y = (x * 1).view({1, 3});
        return y.t_().addmm_(y, at::ones({1, 1}));
      },
  };
  for (const Step& step : steps)
    for (bool computed : {false, true}) {
      const at::Tensor leaf = torch::tensor({1.f, 2.f, 3.f}).requires_grad_();
      auto make = [&] {
        return [&step, state = at::Tensor()](const Tensors& in) mutable {
          at::Tensor sum = state.defined() ? in[0] + state : in[0] + torch::rand(3);
          state = sum.detach();
          return Tensors{step(in[0]), sum};
        };
      };
      std::vector<Tensors> calls;
      for (int call = 0; call < 3; ++call)
        calls.push_back({computed ? leaf.detach().clone().requires_grad_() * 1 : leaf.detach().clone()});
      expect_same_calls(make, calls);
    }
}

/// Scales by what it keeps in its context.
struct Scale : torch::autograd::Function<Scale> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, at::Tensor x, at::Tensor factor) {
    ctx->saved_data["factor"] = factor;
    return x * factor;
  }
  static Tensors backward(torch::autograd::AutogradContext* ctx, Tensors gradients) {
    return {gradients[0] * ctx->saved_data["factor"].toTensor(), at::Tensor()};
  }
};

TEST(KeptState, ContextsOfCustomFunctionsAreNoState) {
  Compiled fast([](const Tensors& in) { return Tensors{Scale::apply(in[0], in[0].detach() * 2).sum()}; }, {});
  at::Tensor x = leaf({3});
  EXPECT_EQ(fast.explain({x}).eager_reason, "");
  EXPECT_TRUE(same_values(torch::autograd::grad({fast({x})[0]}, {x})[0], x.detach() * 2));
}

TEST(KeptState, WhatHooksHoldIsNoState) {
  Compiled fast(
      [](const Tensors& in) {
        at::Tensor middle = in[0] * 2, factor = in[0].detach() * 3;
        middle.register_hook([factor](const at::Tensor& gradient) { return gradient * factor; });
        return Tensors{middle.sum()};
      },
      {});
  at::Tensor x = leaf({3});
  EXPECT_EQ(fast.explain({x}).eager_reason, "");
  EXPECT_TRUE(same_values(torch::autograd::grad({fast({x})[0]}, {x})[0], x.detach() * 6));
}

TEST(KeptState, BesideAWriteThatAutogradDoesNotSee) {
  std::vector<at::Tensor> kept;
  const Callable fn = [&](const Tensors& in) {
    at::Tensor y = in[0] * 2;
    kept.push_back(y.detach());
    y.data().add_(1);
    return Tensors{(y * y).sum(), y};
  };
  Compiled fast(fn, {});
  for (int call = 0; call < 3; ++call) {
    const at::Tensor x = leaf({3});
    const Tensors want = fn({x}), got = fast({x});
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(same_values(want[i], got[i]));
      EXPECT_TRUE(same_values(torch::autograd::grad({want[i].sum()}, {x}, {}, true)[0],
                              torch::autograd::grad({got[i].sum()}, {x}, {}, true)[0]));
    }
  }
}

}  // namespace
}  // namespace tandem
