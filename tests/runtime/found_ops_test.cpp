// Programs that random search found, about single operators: their layouts and errors, random numbers,
// tensors without elements, zeros without memory.
#include "runtime/compare.h"

namespace tandem {
namespace {

/// Eager refuses the call, and so does the compiled function, in the same words.
void expect_refused(const test::Maker& make, const Callable& body) {
  const std::string want = test::message<c10::Error>([&] { body(make().arguments); });
  EXPECT_NE(want, "");
  auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  for (const char* backend : {"eager", "debug"}) {
    Options options;
    options.backend = backend;
    Compiled fast(body, options);
    EXPECT_EQ(first_line(test::message([&] { fast(make().arguments); })), first_line(want)) << backend;
  }
}

/// What autograd::grad gives of the outputs chosen, or the sentence that it throws.
struct Gradients {
  Tensors found;
  std::string failure;
};

Gradients gradients(const Callable& fn, const test::Maker& make, const std::vector<size_t>& of,
                    uint64_t seed) {
  torch::manual_seed(seed);
  test::Scene scene = make();
  Gradients result;
  result.failure = test::message([&] {
    const Tensors outputs = fn(scene.arguments);
    Tensors roots, tangents;
    for (size_t i : of) roots.push_back(outputs[i]), tangents.push_back(torch::randn_like(outputs[i]));
    result.found = torch::autograd::grad(roots, scene.leaves, tangents, {}, false, /*allow_unused=*/true);
  });
  return result;
}

/// Of these outputs alone the gradients are eager's, or are refused as in eager.
void expect_same_gradients(const test::Maker& make, const Callable& body, const std::vector<size_t>& of) {
  Compiled fast(body, {});
  for (uint64_t seed : {1, 2}) {
    const Gradients want = gradients(body, make, of, seed),
                    got = gradients([&](const Tensors& in) { return fast(in); }, make, of, seed);
    EXPECT_EQ(got.failure.empty(), want.failure.empty())
        << "eager: " << want.failure << "\ncompiled: " << got.failure;
    ASSERT_EQ(got.found.size(), want.found.size());
    for (size_t i = 0; i < want.found.size(); ++i)
      EXPECT_TRUE(test::same_values(got.found[i], want.found[i]));
  }
}

/// One gradient after the other, each of the one before, as far as eager has them.
std::pair<Tensors, bool> orders_of(const Callable& fn, const test::Maker& make, size_t count) {
  torch::manual_seed(5);
  test::Scene scene = make();
  Tensors found, of = fn(scene.arguments);
  bool refused = false;
  for (size_t order = 1; order <= count && !refused && of[0].defined() && of[0].requires_grad(); ++order) {
    refused = !test::message([&] {
                 of = torch::autograd::grad(of, {scene.leaves[0]}, {at::ones_like(of[0])}, true,
                                            /*create_graph=*/order < count, true);
               }).empty();
    if (!refused) found.push_back(of[0]);
  }
  return {found, refused};
}

void expect_same_orders(const test::Maker& make, const Callable& body, size_t count) {
  Compiled fast(body, {});
  const auto [want, eager_refuses] = orders_of(body, make, count);
  const auto [got, refuses] = orders_of([&](const Tensors& in) { return fast(in); }, make, count);
  EXPECT_EQ(refuses, eager_refuses);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_TRUE(test::same_values(got[i].clone(), want[i].clone())) << "order " << i + 1;
    EXPECT_EQ(got[i].requires_grad(), want[i].requires_grad()) << "order " << i + 1;
  }
}

test::Maker given(const std::function<Tensors()>& arguments) {
  return [arguments] {
    test::Scene scene{arguments(), {}, {}};
    for (const at::Tensor& t : scene.arguments)
      if (t.requires_grad() && t.is_leaf()) scene.leaves.push_back(t);
    return scene;
  };
}

TEST(FoundOps, ListsOfTensorsThatAreCastAndNotDense) {
  test::expect_same(
      given(
          [] { return Tensors{torch::randn({1, 2}).expand({2, 2}), torch::randn({2, 2}, at::kDouble).t()}; }),
      [](const Tensors& v) { return at::_foreach_add({v[0], v[1]}, {v[1], v[0]}); });
}

TEST(FoundOps, ANumberBesideATensorWithStridesOfNoUse) {
  test::expect_same(given([] {
                      return Tensors{torch::randn({2, 1, 1}).requires_grad_(),
                                     torch::randn({2, 1, 2}).transpose(0, -1)};
                    }),
                    [](const Tensors& v) { return Tensors{at::addcdiv(v[0], v[1].unfold(0, 2, 1), v[0])}; });
}

TEST(FoundOps, WhatIsMadeInsideIsWrittenAndReadByOneOperator) {
  test::expect_same(test::leaves({{3}}, {true}), [](const Tensors& v) {
    at::Tensor y = at::ones({3});
    at::sin_out(y, y);
    return Tensors{v[0] * y};
  });
}

TEST(FoundOps, RandomNumbersThatOnlySomeGradientsRead) {
  const test::Maker x = test::leaves({{1, 3}}, {true});
  const Callable body = [](const Tensors& v) {
    at::Tensor ones = at::ones({3}), dropped = at::dropout_(ones, 0.5, true),
               angle = at::atan2(dropped, v[0]);
    return Tensors{angle, at::index_select(v[0], 1, at::zeros({2}, at::kLong)), angle};
  };
  for (const auto& of : std::vector<std::vector<size_t>>{{0}, {1}, {0, 1}, {0, 1, 2}})
    expect_same_gradients(x, body, of);
}

TEST(FoundOps, AGradientThatIsNoneBesideOneThatIsRefused) {
  const test::Maker x = test::leaves({{}, {}}, {true, false});
  const Callable body = [](const Tensors& v) {
    return Tensors{at::bernoulli(v[0], 0.5), at::_foreach_mul({v[0], v[1]}, 0)[1]};
  };
  for (const auto& of : std::vector<std::vector<size_t>>{{0}, {1}, {0, 1}})
    expect_same_gradients(x, body, of);
}

TEST(FoundOps, ALossOfTwoDtypesWhoseGradientNobodyReads) {
  const test::Maker x = given([] { return Tensors{torch::randn({}, at::kBFloat16).requires_grad_()}; });
  expect_same_gradients(
      x, [](const Tensors& v) { return Tensors{at::mse_loss(at::scalar_tensor(1), at::pow(v[0], 0))}; }, {0});
  expect_same_gradients(
      x, [](const Tensors& v) { return Tensors{at::huber_loss(at::scalar_tensor(1), at::pow(v[0], 0))}; },
      {0});
}

TEST(FoundOps, ErrorsOfSizesInWhatNobodyReads) {
  expect_refused(test::leaves({{1}}, {true}), [](const Tensors& v) {
    at::Tensor y = at::argmax(v[0], 0), z = v[0] * y;
    y.masked_fill_(at::gt(v[0], 0), 2);
    return Tensors{z};
  });
  expect_refused(test::leaves({{3}}, {true}), [](const Tensors& v) {
    at::relu(at::logical_not(v[0]));
    return Tensors{v[0] * 2};
  });
}

TEST(FoundOps, AnEmptyTensorIsAddedToItself) {
  const test::Maker empty = test::leaves({{0}}, {false});
  expect_refused(empty, [](const Tensors& v) { return Tensors{v[0].index_add_(0, at::arange(0), v[0])}; });
  expect_refused(empty, [](const Tensors& v) { return Tensors{v[0].index_copy_(0, at::arange(0), v[0])}; });
}

TEST(FoundOps, RowsAreAddedToAnEmptyTensor) {
  test::expect_same(test::leaves({{1, 1}}, {true}), [](const Tensors& v) {
    return Tensors{at::tril(v[0], 2).slice(1, 1).mul_(2).index_add_(1, at::arange(1), v[0])};
  });
}

TEST(FoundOps, APartOfAnEmptyTensorIsResized) {
  test::expect_same(test::leaves({{0, 3}}, {false}), [](const Tensors& v) {
    Tensors parts = (v[0] + 3).unbind(1);
    at::sin_out(parts[2], v[0]);
    return Tensors{parts[0]};
  });
}

TEST(FoundOps, AResultThatCannotGrowBecauseItIsRead) {
  expect_refused(test::leaves({{1}}, {false}), [](const Tensors& v) {
    at::Tensor y = at::roll(v[0], {2}, {0});
    at::add_out(y, y, at::randint(5, {3, 3}));
    return Tensors{y};
  });
}

TEST(FoundOps, AnEmptyArgumentGetsAHistory) {
  const test::Maker x = given([] {
    return Tensors{torch::randn({}, at::kDouble).requires_grad_(),
                   torch::randn({0}, at::kDouble).transpose(0, -1)};
  });
  expect_same_gradients(x,
                        [](const Tensors& v) {
                          v[1].add_(v[0]);
                          return Tensors{at::mul(v[1], v[1])};
                        },
                        {0});
  expect_same_gradients(x,
                        [](const Tensors& v) {
                          v[1].add_(v[0]);
                          v[1].sin_();
                          return Tensors{v[1]};
                        },
                        {0});
}

/// What the caller sees of an output and of the arguments once autograd was asked for their histories, which
/// it gives to views of a written tensor only then.
void expect_same_histories(const test::Maker& make, const Callable& body) {
  Compiled fast(body, {});
  auto histories = [&](const Callable& fn) {
    test::Scene scene = make();
    Tensors all = fn(scene.arguments);
    all.insert(all.end(), scene.arguments.begin(), scene.arguments.end());
    std::string text;
    for (const at::Tensor& t : all) {
      const bool has_history = t.grad_fn() != nullptr;
      text += std::string(has_history ? "has a history" : "has none") +
              (t.requires_grad() ? ", requires grad" : "") + (t.is_leaf() ? ", a leaf; " : "; ");
    }
    return text + (torch::autograd::grad({all[0].sum()}, {scene.leaves[0]}, {}, {}, false, true)[0].defined()
                       ? "a gradient"
                       : "none");
  };
  for (int call = 0; call < 2; ++call)
    EXPECT_EQ(histories([&](const Tensors& in) { return fast(in); }), histories(body));
}

TEST(FoundOps, EmptyViewsOfOneTensorHaveOneHistory) {
  expect_same_histories(given([] {
                          at::Tensor x = torch::randn({0});
                          return Tensors{torch::randn({}).requires_grad_(), x, x.transpose(0, -1)};
                        }),
                        [](const Tensors& v) {
                          at::Tensor y = v[2].slice(0, 1).mul_(2);
                          v[1].mul_(v[0]);
                          return Tensors{y};
                        });
}

TEST(FoundOps, ANeighbourOfAViewGetsAHistory) {
  expect_same_histories(given([] {
                          at::Tensor x = torch::randn({2, 3});
                          return Tensors{torch::randn({}).requires_grad_(), x.select(0, 0), x.select(0, 1)};
                        }),
                        [](const Tensors& v) {
                          at::Tensor y = v[2].slice(0, 1);
                          v[1].mul_(v[0]);
                          return Tensors{y};
                        });
}

TEST(FoundOps, AZeroDerivativeTimesInfinity) {
  const test::Maker x = given(
      [] { return Tensors{torch::randn({}, at::kDouble).requires_grad_(), torch::zeros({}, at::kBool)}; });
  expect_same_orders(x, [](const Tensors& v) { return Tensors{at::abs(at::div(v[0], v[1]))}; }, 2);
}

TEST(FoundOps, TwoEqualValuesOfWhichOneIsReturnedAsAView) {
  Compiled fast(
      [](const Tensors& in) {
        at::Tensor a = at::softmax(in[0], 0), b = at::softmax(in[0], 0);
        return Tensors{b + in[0], a.view({-1})};
      },
      {});
  const at::Tensor x = test::leaf({});
  const Tensors out = fast({x});
  {
    at::NoGradGuard no_grad;
    out[1].mul_(2);
  }
  EXPECT_EQ(torch::autograd::grad({out[0]}, {x})[0].item<float>(), 1);
}

TEST(FoundOps, AResultIsResizedLikeCopiesOfCastOperands) {
  const test::Maker x = given([] {
    return Tensors{torch::randn({2, 1, 2}).transpose(0, -1), torch::randn({2}),
                   torch::ones({1, 1, 2}, at::kBool).expand({2, 1, 2})};
  });
  test::expect_same(x, [](const Tensors& v) {
    at::Tensor y = at::relu(v[1]);
    at::mul_out(y, v[2], v[0]);
    return Tensors{y};
  });
}

TEST(FoundOps, AViewOfZerosWithoutMemory) {
  const test::Maker x = given([] { return Tensors{torch::randn({2, 2}, at::kDouble).requires_grad_()}; });
  expect_same_orders(x, [](const Tensors& v) { return Tensors{at::abs(v[0].view({-1}))}; }, 2);
  expect_same_orders(
      x, [](const Tensors& v) { return Tensors{at::abs(v[0].t().slice(0, 1).expand({3, 1, 2}))}; }, 2);
}

TEST(FoundOps, ADerivativeThatWritesZerosWithoutMemory) {
  const test::Maker x = given([] {
    return Tensors{torch::randn({}, at::kDouble).requires_grad_(),
                   torch::randn({}, at::kDouble).requires_grad_()};
  });
  expect_same_orders(x, [](const Tensors& v) { return Tensors{at::abs(at::mse_loss(v[1], v[0]))}; }, 3);
}

}  // namespace
}  // namespace tandem
