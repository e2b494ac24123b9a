// Inputs given twice or overlapping, outputs that are views; the names cite rows of the table of behaviours.
#include "runtime/compare.h"

namespace tandem {
namespace {

using test::compare;
using test::compare_both;
using test::Expectations;
using test::leaf;
using test::leaves;
using test::Maker;
using test::non_leaves;
using test::Scene;

Maker square(bool requires_grad) { return non_leaves({{2, 2}}, {requires_grad}); }
Maker squares(bool requires_grad) { return non_leaves({{2, 2}, {2, 2}, {2, 2}, {2, 2}}, std::vector<bool>(4, requires_grad)); }

/// The arguments of `make`, the first one also in the other places.
Maker repeated(const Maker& make, size_t times) {
  return [=] {
    Scene scene = make();
    scene.arguments.resize(1);
    for (size_t i = 1; i < times; ++i) scene.arguments.push_back(scene.arguments[0]);
    return scene;
  };
}

const Expectations may_be_eager{.compiled = false};

TEST(Duplicates, C1_OneLeafTwice) {
  compare([](const Tensors& in) { return Tensors{in[0] + in[1]}; }, repeated(leaves({{3}}, {true}), 2));
}

TEST(Duplicates, C2_SizesOfBothAreChanged) {
  compare([](const Tensors& in) { in[0].t_(); in[1].unsqueeze_(0); return Tensors{in[0] + in[1]}; }, repeated(square(true), 2));
}

TEST(Duplicates, C3_TheThirdArgumentIsReturned) {
  compare([](const Tensors& in) { in[0][0].add_(1); return Tensors{in[2]}; }, [] {
    Scene scene = non_leaves({{2, 2}, {2, 2}}, {false, false})();
    scene.arguments.push_back(scene.arguments[0]);
    return scene;
  });
}

TEST(Duplicates, C4_WithOutputsOnOneStorage) {
  compare([](const Tensors& in) {
    const at::Tensor &x = in[0], &y = in[1];
    y.mul_(2);
    at::Tensor d = x + 4 + y;
    return Tensors{x + 1, x + 2, x + 3, d, d.view({-1})};
  }, repeated(square(false), 2));
}

TEST(Duplicates, C6_OneObjectServesBoth) {
  Callable fn = [](const Tensors& in) { in[0].unsqueeze_(0); in[1].unsqueeze_(0); return Tensors{in[0] + in[1]}; };
  for (bool together_first : {true, false}) {
    Compiled fast(fn, {});
    for (bool together : {together_first, !together_first}) {
      at::Tensor x = torch::ones(2), y = together ? x : torch::ones(2), u = torch::ones(2), v = together ? u : torch::ones(2);
      EXPECT_TRUE(test::same_values(fast({x, y})[0], fn({u, v})[0]));
      EXPECT_EQ(x.sizes(), u.sizes());
      EXPECT_EQ(y.sizes(), v.sizes());
    }
  }
}

TEST(Overlapping, C8_C9_C18_AWriteIsSeenThroughTheOther) {
  auto overlapping = [](bool rg, auto first, auto second) -> Maker {
    return [=] {
      Scene scene = non_leaves({{2, 4}}, {rg})();
      at::Tensor x = scene.arguments[0];
      scene.others = {x};
      scene.arguments = {first(x), second(x)};
      return scene;
    };
  };
  Callable fn = [](const Tensors& in) { in[0].add_(1); return Tensors{in[0] + in[1]}; };
  auto row = [](at::Tensor x) { return x[0]; };
  auto itself = [](at::Tensor x) { return x; };
  auto other_row = [](at::Tensor x) { return x[1]; };
  for (bool rg : {false, true}) {
    compare(fn, overlapping(rg, row, row), may_be_eager);
    compare(fn, overlapping(rg, row, itself), may_be_eager);
    compare(fn, overlapping(rg, row, other_row), may_be_eager);
    compare(fn, overlapping(rg, [](at::Tensor x) { return x.detach()[0]; }, [](at::Tensor x) { return x.detach()[0]; }), may_be_eager);
  }
}

TEST(Overlapping, C13_SizesChangedWithoutAWriteToData) {
  compare([](const Tensors& in) { in[0].t_(); return Tensors{in[0] + in[1]}; }, [] {
    Scene scene = non_leaves({{4}}, {true})();
    scene.arguments = {scene.arguments[0].view({4}), scene.arguments[0].view({4})};
    return scene;
  }, {.same_versions = false});
}

TEST(Overlapping, C22_ViewsOfEachAreOfItsOwn) {
  compare_both([](const Tensors& in) { return Tensors{in[0].view(in[0].sizes()), in[1].view(in[1].sizes())}; }, [](bool rg) -> Maker {
    return [rg] {
      Scene scene = square(rg)();
      at::Tensor x = scene.arguments[0];
      scene.arguments = {x.view({-1}), x[0]};
      return scene;
    };
  });
}

TEST(OutputViews, D1_OfAnInput) {
  compare_both([](const Tensors& in) { return Tensors{in[0].view({-1})}; }, square);
  compare_both([](const Tensors& in) { return Tensors{in[0].t().select(0, 1), in[0].detach(), in[0].expand({3, 2, 2})}; }, square, {.write_outputs = false});
}

TEST(OutputViews, D2_OfInputsOfWhichSomeAreWritten) {
  compare_both([](const Tensors& in) { in[0].mul_(2); in[2].mul_(3); return Tensors{in[1].view({4}), in[2].view({4})}; }, squares);
}

TEST(OutputViews, D4_OfAWrittenInput) {
  compare_both([](const Tensors& in) { in[0].add_(1); return Tensors{in[0].view({-1})}; }, square);
  compare_both([](const Tensors& in) { in[1].transpose_(0, 1); in[2].add_(1); return Tensors{in[3] + 1, in[1].diagonal(), in[0] + in[2]}; }, squares);
}

TEST(OutputViews, D5_OfAnotherOutput) {
  compare_both([](const Tensors& in) { at::Tensor b = in[0] * 2; return Tensors{b, b.view({-1})}; }, square);
}

TEST(OutputViews, D6_OfAHiddenIntermediate) {
  compare_both([](const Tensors& in) { return Tensors{(in[0] * 2).view({-1})}; }, square, {.same_bases = false});
  compare_both([](const Tensors& in) { return Tensors{(in[0] * 2).t()[0]}; }, square, {.same_bases = false});
}

TEST(OutputViews, D7_TwoOfOneIntermediate) {
  compare_both([](const Tensors& in) { at::Tensor out = in[0] * 3; return Tensors{out.view({-1}), out.view({-1})}; }, square);
}

TEST(OutputViews, D8_WithTheIntermediateItself) {
  compare_both([](const Tensors& in) { at::Tensor out = in[0] * 3; return Tensors{out, out.view({-1})}; }, square);
  compare_both([](const Tensors& in) { at::Tensor out = in[0] * 3; return Tensors{out.view({-1}), out}; }, square);
  compare_both([](const Tensors& in) { at::Tensor out = in[0] * 3; return Tensors{out, out.view({-1}), out, out.view({-1})}; }, square);
}

TEST(OutputViews, D10_D11_OfSeveralIntermediates) {
  compare_both([](const Tensors& in) { at::Tensor one = in[0] * 3, two = in[0] * 4; return Tensors{one.view({-1}), two.t(), one.t()}; }, square);
  for (bool rg : {false, true})
    compare([](const Tensors& in) { at::Tensor out = in[0] * 3; return Tensors{out.view({-1}), in[1] + 1}; }, non_leaves({{2, 2}, {2, 2}}, {false, rg}));
}

TEST(OutputViews, D14_WithSizesOfAnInputChanged) {
  compare_both([](const Tensors& in) {
    in[0].transpose_(0, 1);
    at::Tensor tmp = in[0] * 2;
    return Tensors{tmp.squeeze(), tmp.transpose(0, 1), in[0].unsqueeze(0)};
  }, square);
}

TEST(OutputViews, D15_ManyFromOneOperator) {
  compare([](const Tensors& in) { return in[0].unbind(); }, leaves({{2, 3}}, {true}), {.compiled = false, .same_bases = false});
  compare([](const Tensors& in) { Tensors out = in[0].unbind(); out.push_back(in[0].view({-1})); return out; }, non_leaves({{2, 3}}, {true}),
          {.compiled = false, .same_bases = false});
  compare([](const Tensors& in) { return in[0].unbind(); }, leaves({{2, 3}}, {false}), may_be_eager);
}

TEST(OutputViews, D17_ManyOfAnIntermediate) {
  for (int extra = 0; extra < 3; ++extra)
    compare_both([extra](const Tensors& in) {
      at::Tensor out = in[0] * 3;
      Tensors all = out.unbind();
      if (extra > 0) all.push_back(out);
      if (extra > 1) all.push_back(out.view({-1}));
      return all;
    }, square, {.compiled = false, .same_bases = false});
}

TEST(OutputViews, D21_ATangentThatIsNotContiguous) {
  compare([](const Tensors& in) { return Tensors{in[0].view({2, 3}).t()}; }, leaves({{6}}, {true}), {.write_outputs = false});
  compare([](const Tensors& in) { return Tensors{(in[0] * 2).view({2, 3}).t()}; }, leaves({{6}}, {true}), {.same_bases = false});
}

TEST(OutputViews, AreOfARealWriteLaterOn) {
  for (bool keep : {true, false}) {
    Compiled fast([](const Tensors& in) { at::Tensor b = in[0] + 1; return Tensors{b, b.slice(0, 1), in[0].slice(0, 1)}; }, {.keep_input_mutations = keep});
    at::Tensor a = torch::zeros(3);
    Tensors out = fast({a});
    out[0].add_(1);
    a.add_(5);
    EXPECT_TRUE(test::same_values(out[1], torch::full(2, 2.f)));
    EXPECT_TRUE(test::same_values(out[2], torch::full(2, 5.f)));
  }
}

TEST(RequiresGrad, E1_OutputByOutput) {
  for (bool a : {false, true})
    for (bool b : {false, true}) compare([](const Tensors& in) { return Tensors{in[0].cos(), in[1].cos(), in[0] * in[1]}; }, leaves({{3}, {3}}, {a, b}));
}

TEST(RequiresGrad, E3_Detached) {
  compare([](const Tensors& in) { return Tensors{in[0].detach(), in[1]}; }, leaves({{3}, {3}}, {true, true}), {.write_outputs = false});
  compare([](const Tensors& in) { return Tensors{(in[0] + 1).detach(), in[1]}; }, leaves({{3}, {3}}, {true, true}), {.write_outputs = false});
}

TEST(RequiresGrad, E5_EnabledInsideNoGrad) {
  Callable fn = [](const Tensors& in) {
    torch::NoGradGuard no_grad;
    at::Tensor one = in[0].sin();
    torch::AutoGradMode enabled(true);
    return Tensors{one, in[0].cos()};
  };
  compare_both(fn, [](bool rg) { return leaves({{3}}, {rg}); });
  Compiled fast(fn, {});
  at::Tensor x = leaf({3});
  torch::NoGradGuard outside;
  Tensors out = fast({x});
  EXPECT_FALSE(out[0].requires_grad());
  EXPECT_TRUE(out[1].requires_grad());
}

}  // namespace
}  // namespace tandem
