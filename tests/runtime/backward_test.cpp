// Backwards of compiled functions, called in all the ways in which eager's can be.
#include "runtime/compare.h"

namespace tandem {
namespace {

using test::contains;
using test::counter;
using test::leaf;
using test::message;
using test::same_values;

Tensors product(const Tensors& in) { return {(in[0] * in[1]).tanh(), in[0].sin() * in[2]}; }

struct Backward : testing::Test {
  at::Tensor a = leaf({3}), b = leaf({3}), c = leaf({3});
  Compiled fast = Compiled(product, {});
};

TEST_F(Backward, IsCompiledAtItsFirstCall) {
  uint64_t forwards = counter("compile_forward"), backwards = counter("compile_backward");
  at::Tensor y = fast({a, b, c})[0];
  EXPECT_EQ(counter("compile_forward"), forwards + 1);
  EXPECT_EQ(counter("compile_backward"), backwards);
  y.backward(torch::ones(3), true);
  EXPECT_EQ(counter("compile_backward"), backwards + 1);
  y.backward(torch::ones(3));
  fast({a, b, c})[0].backward(torch::ones(3));
  EXPECT_EQ(counter("compile_backward"), backwards + 1);
}

TEST_F(Backward, TwiceWithARetainedGraph) {
  at::Tensor got = fast({a, b, c})[0], want = product({a, b, c})[0];
  for (bool retain : {true, true, false})
    EXPECT_TRUE(same_values(torch::autograd::grad({got.sum()}, {a}, {}, retain)[0],
                            torch::autograd::grad({want.sum()}, {a}, {}, retain)[0]));
}

TEST_F(Backward, ASecondTimeWithoutIsEagersError) {
  at::Tensor got = fast({a, b, c})[0].sum(), want = product({a, b, c})[0].sum();
  got.backward();
  want.backward();
  std::string eager = message([&] { want.backward(); }), ours = message([&] { got.backward(); });
  EXPECT_TRUE(contains(eager, "second time")) << eager;
  EXPECT_TRUE(contains(ours, "second time")) << ours;
}

TEST_F(Backward, ASecondTimeWhereNothingWasSaved) {
  Compiled shift([](const Tensors& in) { return Tensors{in[0] + 1}; }, {});
  at::Tensor y = shift({a})[0];
  y.backward(torch::ones(3));
  y.backward(torch::ones(3));
  EXPECT_TRUE(same_values(a.grad(), torch::full(3, 2.f)));
}

TEST_F(Backward, OnlySomeOutputsGetGradients) {
  for (size_t which : {0, 1}) {
    Tensors got =
        torch::autograd::grad({fast({a, b, c})[which]}, {a, b, c}, {torch::ones(3)}, false, false, true);
    Tensors want =
        torch::autograd::grad({product({a, b, c})[which]}, {a, b, c}, {torch::ones(3)}, false, false, true);
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_values(got[i], want[i])) << which << " " << i;
  }
}

TEST_F(Backward, InputsWithoutAGradientStayUndefined) {
  fast({a, b, c})[0].sum().backward();
  EXPECT_TRUE(a.grad().defined());
  EXPECT_FALSE(c.grad().defined());
  Compiled apart([](const Tensors& in) { return Tensors{in[0] * 2, in[1].detach() * 3}; }, {});
  apart({b, c})[0].sum().backward();
  EXPECT_FALSE(c.grad().defined());
}

TEST_F(Backward, ForASubsetOfTheInputs) {
  for (const Tensors& wanted : {Tensors{a}, Tensors{b}, Tensors{c}, Tensors{c, a}}) {
    auto loss = [](const Tensors& out) { return Tensors{out[0].sum() + out[1].sum()}; };
    Tensors got = torch::autograd::grad(loss(fast({a, b, c})), wanted),
            want = torch::autograd::grad(loss(product({a, b, c})), wanted);
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(same_values(got[i], want[i]));
  }
}

TEST_F(Backward, TangentsOfEveryLayout) {
  Callable fn = [](const Tensors& in) { return Tensors{(in[0].t() + 1).exp()}; };
  Compiled transposed(fn, {});
  at::Tensor x = leaf({3, 4});
  const Tensors tangents = {torch::randn({4, 3}), torch::randn({3, 4}).t(), torch::ones({}).expand({4, 3}),
                            torch::randn({8, 6}).slice(0, 0, 8, 2).slice(1, 0, 6, 2),
                            torch::randn({4}).unsqueeze(1).expand({4, 3})};
  for (const at::Tensor& tangent : tangents)
    EXPECT_TRUE(same_values(torch::autograd::grad({transposed({x})[0]}, {x}, {tangent})[0],
                            torch::autograd::grad({fn({x})[0]}, {x}, {tangent})[0]));
}

TEST_F(Backward, OfAComplexFunction) {
  Callable fn = [](const Tensors& in) {
    return Tensors{at::complex(in[0], in[1]).mul(at::complex(in[1], in[2]).conj()).abs()};
  };
  Compiled fast(fn, {});
  Tensors got = torch::autograd::grad({fast({a, b, c})[0].sum()}, {a, b, c}),
          want = torch::autograd::grad({fn({a, b, c})[0].sum()}, {a, b, c});
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_values(got[i], want[i]));
}

// ---- values that were written between forward and backward

/// Whether the backward of `fn` notices a write by `write(inputs, outputs)`.
bool notices(const Callable& fn, const std::function<void(const Tensors&, const Tensors&)>& write) {
  Tensors in = {leaf({3}) + 0, leaf({3}) + 0};
  Tensors out = fn(in);
  write(in, out);
  at::Tensor loss = at::zeros({});
  for (const at::Tensor& o : out)
    if (o.requires_grad()) loss = loss + o.sum();
  std::string error = message([&] { loss.backward(); });
  EXPECT_TRUE(error.empty() || contains(error, "modified by an inplace operation")) << error;
  return !error.empty();
}

void expect_noticed_as_in_eager(const Callable& fn,
                                const std::function<void(const Tensors&, const Tensors&)>& write,
                                bool noticed) {
  Compiled fast(fn, {});
  EXPECT_EQ(notices(fn, write), noticed);
  EXPECT_EQ(notices([&](const Tensors& in) { return fast(in); }, write), noticed);
  EXPECT_EQ(notices([&](const Tensors& in) { return fast(in); }, [](auto&, auto&) {}), false);
}

const auto write_first_input = [](const Tensors& in, const Tensors&) { in[0].detach().add_(1); };
const auto write_first_output = [](const Tensors&, const Tensors& out) { out[0].detach().add_(1); };

TEST(WrittenBeforeBackward, ASavedInput) {
  expect_noticed_as_in_eager([](const Tensors& in) { return Tensors{in[0] * in[1]}; }, write_first_input,
                             true);
  expect_noticed_as_in_eager([](const Tensors& in) { return Tensors{in[0] + in[1]}; }, write_first_input,
                             false);
}

TEST(WrittenBeforeBackward, AViewOfAnInput) {
  expect_noticed_as_in_eager([](const Tensors& in) { return Tensors{in[0].view({3, 1}) * in[1]}; },
                             write_first_input, true);
  expect_noticed_as_in_eager(
      [](const Tensors& in) { return Tensors{in[0].slice(0, 0, 2) * in[1].slice(0, 1)}; }, write_first_input,
      true);
}

TEST(WrittenBeforeBackward, ASavedOutput) {
  expect_noticed_as_in_eager([](const Tensors& in) { return Tensors{in[0].exp()}; }, write_first_output,
                             true);
  expect_noticed_as_in_eager([](const Tensors& in) { return Tensors{in[0].sin()}; }, write_first_output,
                             false);
  expect_noticed_as_in_eager([](const Tensors& in) { return Tensors{in[0].exp().view({3, 1})}; },
                             write_first_output, true);
  expect_noticed_as_in_eager(
      [](const Tensors& in) {
        at::Tensor y = in[0] + 1;
        return Tensors{y, y.view({3, 1}) * in[1]};
      },
      write_first_output, true);
}

TEST(WrittenBeforeBackward, AnOutputThatIsOnlyReturned) {
  expect_noticed_as_in_eager([](const Tensors& in) { return Tensors{in[0] * 2, in[0] * in[1]}; },
                             write_first_output, false);
}

TEST(WrittenBeforeBackward, AParameter) {
  for (bool saved : {true, false}) {
    torch::nn::Linear model(2, 2);
    at::Tensor x = leaf({1, 2}, saved);
    Callable fn = [&](const Tensors& in) { return Tensors{model(in[0])}; };
    Compiled fast(fn, {});
    at::Tensor got = fast({x})[0].sum(), want = fn({x})[0].sum();
    {
      torch::NoGradGuard no_grad;
      model->weight.add_(1);
    }
    EXPECT_EQ(contains(message([&] { want.backward(); }), "modified by an inplace operation"), saved);
    EXPECT_EQ(contains(message([&] { got.backward(); }), "modified by an inplace operation"), saved);
  }
}

// ---- what is kept

struct SavedMemory : testing::Test {
  /// of the last value that the last call saved
  c10::weak_intrusive_ptr<c10::StorageImpl> saved{c10::intrusive_ptr<c10::StorageImpl>()};

  Compiled compiled(Tensors (*function)(const Tensors&)) {
    auto keep_track = [this](const Graph& graph, const CompileContext& context) {
      auto code = find_backend("eager")->compile(graph, context);
      return boxed([code, this](Tensors&& in) {
        Tensors out = code->run(std::move(in));
        saved = c10::weak_intrusive_ptr<c10::StorageImpl>(
            c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(out.back().storage().unsafeGetStorageImpl()));
        return out;
      });
    };
    auto plainly = [](const Graph& graph, const CompileContext& context) {
      return find_backend("eager")->compile(graph, context);
    };
    return Compiled(function, {.fw_compiler = keep_track, .bw_compiler = plainly});
  }
};

TEST_F(SavedMemory, IsFreedWhenNoOutputCanReadItAnyMore) {
  Compiled apart = compiled([](const Tensors& in) {
    return [](const at::Tensor& sum) { return Tensors{sum.sin(), sum.cos()}; }(in[0] + 1);
  });
  Tensors out = apart({leaf({3})});
  for (size_t i : {0, 1}) {
    EXPECT_FALSE(saved.expired());
    out[i].sum().backward();
  }
  EXPECT_TRUE(saved.expired());
  Compiled shared = compiled([](const Tensors& in) {
    return [](const at::Tensor& both) { return Tensors{both.sin(), both + 1}; }(in[0].exp());
  });
  out = shared({leaf({3})});
  EXPECT_FALSE(saved.expired());
  out[0].sum().backward();
  EXPECT_TRUE(saved.expired());
}

TEST_F(SavedMemory, IsFreedByTheBackwardAndWithTheOutputs) {
  Compiled fast = compiled([](const Tensors& in) { return Tensors{in[0].exp().sin().sum()}; });
  at::Tensor a = leaf({3}), y = fast({a})[0];
  EXPECT_FALSE(saved.expired());
  y.backward({}, true);
  EXPECT_FALSE(saved.expired());
  y.backward();
  EXPECT_TRUE(saved.expired());
  y = fast({a})[0];
  EXPECT_FALSE(saved.expired());
  y = at::Tensor();
  EXPECT_TRUE(saved.expired());
}

TEST_F(SavedMemory, InputsDieWithTheirOwners) {
  Compiled fast([](const Tensors& in) { return Tensors{in[0].exp()}; }, {});
  at::Tensor a = leaf({3});
  fast({a})[0].sum().backward();
  EXPECT_EQ(a.use_count(), 1u);
  EXPECT_EQ(a.storage().use_count(), 1u);
  at::Tensor y = fast({a})[0];
  c10::weak_intrusive_ptr<c10::TensorImpl> watched(a.getIntrusivePtr());
  y = at::Tensor();
  a = at::Tensor();
  EXPECT_TRUE(watched.expired());
}

TEST_F(SavedMemory, AnOutputThatIsSavedMakesNoCycle) {
  Compiled fast([](const Tensors& in) { return Tensors{in[0].exp()}; }, {});
  at::Tensor y = fast({leaf({3})})[0];
  c10::weak_intrusive_ptr<c10::TensorImpl> watched(y.getIntrusivePtr());
  y = at::Tensor();
  EXPECT_TRUE(watched.expired());
}

TEST_F(Backward, OfIndependentOutputsOneByOne) {
  Compiled fast([](const Tensors& in) { return Tensors{in[0].sin(), in[1].cos(), in[1].exp()}; }, {});
  const at::Tensor x = leaf({3}), y = leaf({3});
  const Tensors out = fast({x, y});
  out[0].sum().backward();
  out[1].sum().backward();
  out[2].sum().backward();
  EXPECT_TRUE(same_values(x.grad(), x.detach().cos()));
  EXPECT_TRUE(same_values(y.grad(), -y.detach().sin() + y.detach().exp()));
  EXPECT_TRUE(contains(message([&] { out[1].sum().backward(); }), "second time"));
}

}  // namespace
}  // namespace tandem
