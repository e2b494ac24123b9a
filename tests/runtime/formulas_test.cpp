// Operators of which libtorch's derivative looks at data: one compiled function is right for whatever the
// data turn out to be.
#include <limits>

#include "runtime/orders.h"

namespace tandem {
namespace {

using test::contains, test::same_values;

constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                 inf = std::numeric_limits<double>::infinity();

/// What decides in the formulas: ties, NaN, zeros of both signs, none of them or several, infinities.
const std::vector<std::vector<double>> six_numbers = {
    {1.5, -2.25, 3, 0.75, -0.5, 2},
    {3, -2, 3, -2, 3, 1},
    {1.5, nan, 3, nan, -0.5, 2},
    {nan, nan, nan, nan, nan, nan},
    {1.5, -2.25, 0, 0.75, -0.5, 2},
    {1.5, -2.25, -0.0, 0.75, -0.5, 2},
    {0, -2.25, 3, 0, -0.5, 2},
    {0, 0.5, 3, 1, -0.5, 0},
    {0, 0, 0, 0, 0, 0},
    {-0.0, 0, -0.0, 0, 0, -0.0},
    {inf, -2.25, 3, 0.75, -0.5, 2},
    {inf, 0, 3, -inf, -0.5, 2},
    {0, nan, 3, 0.75, inf, 2},
    {1e30, 1e30, 1e30, 1e-30, 1, 0},
    {1e-30, 1e-30, 1e-30, 1, 1, 1},
    {-1, -1, -1, -1, -1, -1},
    {0, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, 0},
    {2, 0, 3, 4, nan, 5},
    {0, 0, 3, 0.75, -0.5, inf},
};
/// Those without NaN and infinity.
constexpr size_t ordinary_rows[] = {0, 1, 4, 6, 7, 8, 16, 17};
const std::vector<double> tangents = {1, -0.75, 0.0, -0.0, inf, nan};

using Function = std::function<at::Tensor(const at::Tensor&)>;

const std::vector<at::ScalarType> three_dtypes = {at::kFloat, at::kDouble, at::kBFloat16};

struct Operator {
  std::string name;
  Function call;
  std::vector<at::ScalarType> dtypes = three_dtypes;
  /// of differentiation that are compared; whether the gradients of the last one have a graph depends on data
  /// in eager
  int orders = 3;
};

Tensors both(const Callable& fn, at::Tensor x, double tangent) {
  x.requires_grad_();
  const at::Tensor y = fn({x})[0];
  return {y, torch::autograd::grad({y}, {x}, {at::full_like(y, tangent)})[0]};
}

std::string shown(const std::vector<double>& numbers) {
  std::string text;
  for (double number : numbers) text += std::to_string(number) + ' ';
  return text;
}

Callable listed(const Function& function) {
  return [function](const Tensors& in) { return Tensors{function(in[0])}; };
}

/// The layouts that an input may come in.
const std::vector<std::pair<std::string, Function>> layouts = {
    {"plain", [](const at::Tensor& x) { return x.view({2, 3}).clone(); }},
    {"one dimension", [](const at::Tensor& x) { return x.clone(); }},
    {"three dimensions", [](const at::Tensor& x) { return x.view({3, 1, 2}).clone(); }},
};

void expect_compiled_like_eager(const Operator& op) {
  const Callable eager = listed(op.call);
  for (const char* backend : {"eager", "debug"})
    for (at::ScalarType dtype : op.dtypes)
      for (const auto& [layout, laid_out] : layouts) {
        SCOPED_TRACE(op.name + ", " + backend + ", " + c10::toString(dtype) + ", " + layout);
        const Compiled compiled(eager, Options{.backend = backend});
        const uint64_t traces = test::counter("trace");
        for (const auto& numbers : six_numbers)
          for (double tangent : tangents) {
            SCOPED_TRACE(shown(numbers) + "along " + std::to_string(tangent));
            const at::Tensor x = at::tensor(numbers, at::kDouble).to(dtype);
            const Tensors want = both(eager, laid_out(x), tangent),
                          got = both([&](const Tensors& in) { return compiled(in); }, laid_out(x), tangent);
            EXPECT_TRUE(same_values(got[0], want[0]));
            EXPECT_TRUE(same_values(got[1], want[1])) << "gradient";
            if (testing::Test::HasFailure()) return;
          }
        EXPECT_EQ(test::counter("trace"), traces + 1) << "one trace serves all data";
        EXPECT_EQ(compiled.explain({laid_out(at::ones({6}, dtype)).requires_grad_()}).eager_reason, "");
      }
}

/// Sizes that decide by themselves, and layouts of inputs and gradients.
void expect_sizes_like_eager(const Operator& op) {
  const auto expect = [&](const Function& make) {
    test::compare([&](const Tensors& in) { return Tensors{op.call(in[0])}; },
                  [&] {
                    at::Tensor x = make(at::Tensor());
                    return test::Scene{{x}, {x}, {}};
                  },
                  {.differentiate_written = false});
  };
  for (std::vector<int64_t> sizes : std::vector<std::vector<int64_t>>{{1}, {4, 1}, {1, 4}, {4, 5, 2}}) {
    SCOPED_TRACE(op.name + " of sizes " + std::to_string(sizes.size()));
    expect([&](const at::Tensor&) { return torch::randn(sizes).requires_grad_(); });
    expect([&](const at::Tensor&) { return torch::randn(sizes).transpose(0, -1).requires_grad_(); });
  }
}

void expect_second_order_like_eager(const Operator& op) {
  const Callable eager = listed(op.call);
  for (bool bend : {false, true}) {
    const Compiled compiled(eager, {});
    for (size_t row : ordinary_rows) {
      SCOPED_TRACE(op.name + (bend ? ", tangents require grad: " : ": ") + shown(six_numbers[row]));
      auto orders = [&](const Callable& fn) {
        return test::higher::orders(
            fn, {at::tensor(six_numbers[row], at::kDouble).view({2, 3}).requires_grad_()}, op.orders, bend);
      };
      const Tensors want = orders(eager), got = orders([&](const Tensors& in) { return compiled(in); });
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i)
        test::higher::expect_close(got[i], want[i], "order " + std::to_string(i + 1));
      if (testing::Test::HasFailure()) return;
    }
  }
}

/// A gradient of a gradient that the function takes itself.
void expect_inner_second_order_like_eager(const Operator& op) {
  const Callable penalty = [&](const Tensors& in) {
    const at::Tensor x = in[0].detach().requires_grad_(), y = op.call(x);
    const at::Tensor first = torch::autograd::grad({(y * y).sum()}, {x}, {}, {}, /*create_graph=*/true)[0];
    return torch::autograd::grad({first.square().sum()}, {x});
  };
  const Compiled compiled(penalty, {});
  for (size_t row : ordinary_rows) {
    SCOPED_TRACE(op.name + " twice inside: " + shown(six_numbers[row]));
    const at::Tensor x = at::tensor(six_numbers[row], at::kDouble).view({2, 3});
    test::higher::expect_close(compiled({x})[0], penalty({x})[0], "second gradient");
  }
  EXPECT_EQ(compiled.explain({at::ones({2, 3}, at::kDouble)}).eager_reason, "");
}

/// A gradient that the function takes itself, and a hook on what the operator gave.
void expect_inner_gradients_like_eager(const Operator& op) {
  const Callable step = [&](const Tensors& in) {
    const at::Tensor x = in[0].detach().requires_grad_(), y = op.call(x * 2);
    return Tensors{torch::autograd::grad({(y * y).sum()}, {x})[0]};
  };
  const Callable hooked = [&](const Tensors& in) {
    const at::Tensor y = op.call(in[0] * 2);
    y.register_hook([](const at::Tensor& gradient) { return gradient * 3; });
    return Tensors{y * y};
  };
  const Compiled fast_step(step, {}), fast_hooked(hooked, {});
  for (const auto& numbers : six_numbers) {
    SCOPED_TRACE(op.name + ": " + shown(numbers));
    const at::Tensor x = at::tensor(numbers, at::kFloat).view({2, 3});
    EXPECT_TRUE(same_values(fast_step({x})[0], step({x})[0]));
    const Tensors want = both(hooked, x.clone(), 0.5),
                  got = both([&](const Tensors& in) { return fast_hooked(in); }, x.clone(), 0.5);
    EXPECT_TRUE(same_values(got[0], want[0]) && same_values(got[1], want[1]));
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(fast_step.explain({at::ones({2, 3})}).eager_reason, "");
  EXPECT_EQ(fast_hooked.explain({at::ones({2, 3}).requires_grad_()}).eager_reason, "");
}

void expect_like_eager(const std::vector<Operator>& operators) {
  for (const Operator& op : operators) {
    expect_compiled_like_eager(op);
    expect_sizes_like_eager(op);
    expect_inner_gradients_like_eager(op);
    if (op.orders > 1) expect_second_order_like_eager(op);
    if (op.orders > 1) expect_inner_second_order_like_eager(op);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Formulas, Extrema) {
  expect_like_eager({{"max", [](const at::Tensor& x) { return x.max(); }},
                     {"min", [](const at::Tensor& x) { return x.min(); }}});
}

TEST(Formulas, Medians) {
  expect_like_eager({{"median", [](const at::Tensor& x) { return x.median(); }},
                     {"nanmedian", [](const at::Tensor& x) { return x.nanmedian(); }}});
}

TEST(Formulas, Products) {
  expect_like_eager({
      {"prod", [](const at::Tensor& x) { return x.prod(); }},
      {"prod of a dtype", [](const at::Tensor& x) { return x.prod(at::kDouble); }},
      {"prod of a row", [](const at::Tensor& x) { return x.prod(-1); }},
      {"prod of a column, kept", [](const at::Tensor& x) { return x.prod(0, true); }},
      {"prod of a column of a dtype",
       [](const at::Tensor& x) { return x.prod(0, false, at::kFloat); },
       {at::kDouble, at::kBFloat16},
       1},
  });
}

/// Some versions of libtorch refuse the gradient of a product with zeros in another dtype than the input's.
std::vector<at::ScalarType> dtypes_that_eager_has(const Function& call) {
  std::vector<at::ScalarType> found;
  for (at::ScalarType dtype : three_dtypes) try {
      for (const at::Tensor& x :
           {at::zeros({2, 3}, dtype), at::eye(2, 3, at::TensorOptions(dtype)), at::ones({2, 3}, dtype)})
        for (int order : {1, 2}) both(listed(call), x, order);
      found.push_back(dtype);
    } catch (const c10::Error&) {
    }
  return found;
}

TEST(Formulas, RunningProducts) {
  const Function doubled = [](const at::Tensor& x) { return x.cumprod(0, at::kDouble); };
  expect_like_eager({
      {"cumprod", [](const at::Tensor& x) { return x.cumprod(-1); }, three_dtypes, 2},
      {"cumprod of columns", [](const at::Tensor& x) { return x.cumprod(0); }, three_dtypes, 2},
      {"cumprod of a dtype", doubled, dtypes_that_eager_has(doubled), 2},
      {"cumprod in place", [](const at::Tensor& x) { return (x * 2).cumprod_(-1); }, three_dtypes, 2},
  });
}

TEST(Formulas, ComplexProducts) {
  const Callable products = [](const Tensors& in) {
    return Tensors{at::view_as_real(in[0].prod()), at::view_as_real(in[0].prod(0))};
  };
  const Compiled compiled(products, {});
  auto gradient = [](const Callable& fn, double a, double b) {
    at::Tensor x = at::complex(at::tensor({1.5, a, 3., 0.75, b, 2.}), at::tensor({1., a, 0., 0.5, b, -2.}))
                       .view({2, 3})
                       .requires_grad_();
    const Tensors y = fn({x});
    return torch::autograd::grad({y[0].sum() + y[1].sum()}, {x})[0];
  };
  for (auto [a, b] : std::vector<std::pair<double, double>>{{1, 2}, {0, 2}, {1, 0}, {0, 0}})
    EXPECT_TRUE(same_values(gradient([&](const Tensors& in) { return compiled(in); }, a, b),
                            gradient(products, a, b)));
}

/// libtorch's own formula is a loop in a loop then.
TEST(Formulas, ARunningProductThatIsTooLongToBeDifferentiatedTwice) {
  const Callable product = [](const Tensors& in) { return Tensors{in[0].cumprod(0)}; };
  const Compiled compiled(product, {});
  at::Tensor x = torch::rand({100}).requires_grad_();
  EXPECT_EQ(compiled.explain({x}).eager_reason, "");
  EXPECT_TRUE(same_values(torch::autograd::grad({compiled({x})[0].sum()}, {x})[0],
                          torch::autograd::grad({product({x})[0].sum()}, {x})[0]));
  const std::string said =
      test::message<UnsupportedError>([&] { test::higher::grad(compiled({x})[0].sum(), {x}); });
  EXPECT_TRUE(contains(said, "cumprod over more than 32 elements")) << said;
}

TEST(Formulas, ARunningProductThatIsTooLongAndIsDifferentiatedTwiceInside) {
  const Callable penalty = [](const Tensors& in) {
    const at::Tensor x = in[0].detach().requires_grad_();
    const at::Tensor first =
        torch::autograd::grad({x.cumprod(0).square().sum()}, {x}, {}, {}, /*create_graph=*/true)[0];
    return torch::autograd::grad({first.sum()}, {x});
  };
  const Compiled compiled(penalty, {});
  const at::Tensor x = torch::rand({100});
  EXPECT_TRUE(contains(compiled.explain({x}).eager_reason, "cumprod over more than 32 elements"));
  EXPECT_TRUE(same_values(compiled({x})[0], penalty({x})[0]));
}

/// Of rank 3, 2, 1 and 0, with NaN and infinity, and nearly singular.
const std::vector<std::vector<double>> matrices = {
    {2, -1, 0, 1, 3, 1, 0, 2, -2}, {1, 2, 3, 2, 4, 6, 0, 1, 1},     {1, 2, 3, 2, 4, 6, 3, 6, 9},
    {0, 0, 0, 0, 0, 0, 0, 0, 0},   {2, nan, 0, 1, 3, 1, 0, 2, -2},  {inf, -1, 0, 1, 3, 1, 0, 2, -2},
    {1, 0, 0, 0, 2, 0, 0, 0, 0},   {1, 0, 0, 0, 1, 0, 0, 0, 1e-20}, {0, 1, 0, 1, 0, 0, 0, 0, 1},
};

TEST(Formulas, Determinants) {
  for (at::ScalarType dtype : {at::kFloat, at::kDouble})
    for (bool transposed : {false, true})
      for (const char* backend : {"eager", "debug"}) {
        SCOPED_TRACE(std::string(c10::toString(dtype)) + (transposed ? ", transposed, " : ", ") + backend);
        const Callable det = [](const Tensors& in) { return Tensors{at::linalg_det(in[0])}; };
        const Compiled one(det, Options{.backend = backend}), all(det, Options{.backend = backend});
        Tensors list;
        for (const auto& numbers : matrices) {
          at::Tensor x = at::tensor(numbers, at::kDouble).to(dtype).view({3, 3});
          if (transposed) x = x.t();
          list.push_back(x);
          for (double tangent : {1., -0.75, inf}) {
            SCOPED_TRACE(shown(numbers));
            const Tensors want = both(det, x.clone(), tangent),
                          got = both([&](const Tensors& in) { return one(in); }, x.clone(), tangent);
            EXPECT_TRUE(same_values(got[0], want[0]) && same_values(got[1], want[1]));
          }
        }
        const Tensors want = both(det, at::stack(list), 0.5),
                      got = both([&](const Tensors& in) { return all(in); }, at::stack(list), 0.5);
        EXPECT_TRUE(same_values(got[0], want[0]) && same_values(got[1], want[1]));
        EXPECT_EQ(one.explain({list[0].clone().requires_grad_()}).eager_reason, "");
        EXPECT_EQ(all.explain({at::stack(list).requires_grad_()}).eager_reason, "");
      }
}

TEST(Formulas, SecondDerivativesOfDeterminants) {
  const Callable det = [](const Tensors& in) { return Tensors{at::linalg_det(in[0])}; };
  for (bool bend : {false, true}) {
    const Compiled one(det, {}), some(det, {});
    auto expect = [&](const Compiled& compiled, const at::Tensor& x) {
      // By a singular value that is zero but for rounding, eager itself has few digits in the third.
      auto orders = [&](const Callable& fn) {
        return test::higher::orders(fn, {x.clone().requires_grad_()}, bend ? 2 : 3, bend);
      };
      const Tensors want = orders(det), got = orders([&](const Tensors& in) { return compiled(in); });
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i)
        test::higher::expect_close(got[i], want[i], "order " + std::to_string(i + 1));
    };
    Tensors list;
    for (size_t row : {0, 1, 6, 8}) {
      SCOPED_TRACE(shown(matrices[row]) + (bend ? ", tangents require grad" : ""));
      list.push_back(at::tensor(matrices[row], at::kDouble).view({3, 3}));
      expect(one, list.back());
    }
    SCOPED_TRACE(bend ? "a batch, tangents require grad" : "a batch");
    expect(some, at::stack({list[0], list[1]}));
    expect(some, at::stack({list[0], list[3]}));
    expect(some, at::stack({list[1], list[2]}));
  }
}

TEST(Formulas, SecondDerivativesOfADeterminantThatIsNoNumber) {
  const Callable det = [](const Tensors& in) { return Tensors{at::linalg_det(in[0])}; };
  const Compiled compiled(det, {});
  for (size_t row : {4, 5}) {
    auto second = [&](const Callable& fn) {
      return test::higher::orders(fn, {at::tensor(matrices[row], at::kDouble).view({3, 3}).requires_grad_()},
                                  2, false)[1];
    };
    const at::Tensor want = second(det), got = second([&](const Tensors& in) { return compiled(in); });
    EXPECT_TRUE(at::equal(want.isnan(), got.isnan())) << got << want;
  }
}

}  // namespace
}  // namespace tandem
