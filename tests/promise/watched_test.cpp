// What a compiled function cannot see from outside: calls 2, 3, 5, 9, 17 ... run the original and notice.
#include "runtime/compare.h"

#include <random>

namespace tandem {
namespace {

using test::contains;
using test::counter;
using test::leaf;
using test::same_values;

/// Calls `fn` compiled and as it is, with `change(n)` before call n; the results must be equal whenever a
/// call is watched, and from the one on that notices.
void expect_noticed(const Callable& fn, const std::function<void(int)>& change, const Tensors& in,
                    const std::string& reason) {
  Compiled fast(fn, {});
  const uint64_t before = counter("promise_broken");
  for (int call = 1; call <= 6; ++call) {
    change(call);
    at::Tensor got = fast(in)[0];
    EXPECT_TRUE(same_values(got, fn(in)[0])) << "call " << call;
  }
  EXPECT_EQ(counter("promise_broken") - before, 1u);
  EXPECT_TRUE(contains(fast.explain(in).eager_reason, reason)) << fast.explain(in).eager_reason;
}

TEST(Watched, ACapturedNumber) {
  double factor = 1;
  expect_noticed([&](const Tensors& in) { return Tensors{in[0] * factor}; }, [&](int call) { factor = call; },
                 {leaf({3})}, "other is 2 where it was 1");
}

TEST(Watched, ItIsSaidWhere) {
  double factor = 1;
  Compiled fast([&](const Tensors& in) { return Tensors{in[0] * factor}; }, {.name = "scaled"});
  for (int call = 1; call <= 3; ++call, ++factor) fast({leaf({3})});
  const std::string reason = fast.explain({leaf({3})}).eager_reason;
  EXPECT_TRUE(contains(reason, "aten::mul")) << reason;
#ifdef TANDEM_HAVE_LIBDW
  EXPECT_TRUE(contains(reason, "watched_test.cpp:")) << reason;
#endif
}

TEST(Watched, AHostsRandomNumber) {
  std::mt19937 random(7), replay(7);
  Compiled fast([&](const Tensors& in) { return Tensors{in[0] + double(random())}; }, {});
  replay();  // the trace draws the first, and so does the first call
  at::Tensor x = torch::zeros(1, at::kDouble);
  for (int call = 2; call <= 4; ++call) {
    at::Tensor got = call == 2 ? (fast({x}), fast({x})[0]) : fast({x})[0];
    EXPECT_EQ(got.item<double>(), double(replay())) << call;
  }
}

TEST(Watched, ABufferThatIsRefilled) {
  std::vector<float> buffer(2);
  expect_noticed([&](const Tensors& in) { return Tensors{in[0] * torch::from_blob(buffer.data(), {2})}; },
                 [&](int call) { buffer[0] = float(call); }, {leaf({2})}, "numbers");
}

TEST(Watched, ABufferThatATensorIsMadeOf) {
  std::vector<float> buffer(2);
  expect_noticed([&](const Tensors& in) { return Tensors{in[0] * at::tensor(buffer)}; },
                 [&](int call) { buffer[0] = float(call); }, {leaf({2})}, "numbers");
}

TEST(Watched, AReplacedCapture) {
  Tensors all;
  at::Tensor captured;
  expect_noticed([&](const Tensors& in) { return Tensors{in[0] * captured}; },
                 [&](int call) { all.push_back(captured = torch::full(2, float(call))); }, {leaf({2})},
                 "another tensor than the one that was captured");
}

struct Own : torch::nn::Module {
  double scale = 1;
  at::Tensor forward(at::Tensor x) { return x * scale; }
};

TEST(Watched, AnOptionOfAModule) {
  auto own = std::make_shared<Own>();
  expect_noticed([&](const Tensors& in) { return Tensors{own->forward(in[0])}; },
                 [&](int call) { own->scale = call; }, {leaf({2})}, "where it was");
}

TEST(Watched, AModuleThatNobodyNamed) {
  torch::nn::Dropout dropout(0.5);
  Compiled fast([&](const Tensors& in) { return Tensors{dropout(in[0])}; }, {});
  at::Tensor x = torch::ones(64);
  fast({x});
  dropout->eval();
  for (int call = 2; call <= 5; ++call) EXPECT_TRUE(same_values(fast({x})[0], x)) << call;
}

TEST(Watched, ABranch) {
  bool negative = false;
  expect_noticed([&](const Tensors& in) { return Tensors{negative ? -in[0] : in[0].abs()}; },
                 [&](int call) { negative = call > 1; }, {leaf({2})}, "aten::neg");
}

TEST(Watched, AnOutputThatIsAnother) {
  bool first = true;
  expect_noticed(
      [&](const Tensors& in) {
        at::Tensor a = in[0] + 1, b = in[0] + 2;
        return Tensors{first ? a : b};
      },
      [&](int call) { first = call == 1; }, {leaf({2})}, "output 0");
}

TEST(Watched, CallsAreWatchedEverMoreRarely) {
  size_t runs = 0;
  Compiled fast(
      [&](const Tensors& in) {
        ++runs;
        return Tensors{in[0] * 2};
      },
      {});
  std::vector<int> watched;
  for (int call = 1; call <= 40; ++call) {
    const size_t before = runs;
    fast({torch::ones(2)});
    if (runs > before && call > 1) watched.push_back(call);
  }
  EXPECT_EQ(watched, (std::vector<int>{2, 3, 5, 9, 17, 33}));
}

TEST(Watched, ItCanBeTurnedOff) {
  size_t runs = 0;
  Compiled fast(
      [&](const Tensors& in) {
        ++runs;
        return Tensors{in[0] * 2};
      },
      {.watched_calls = false});
  for (int call = 1; call <= 5; ++call) fast({torch::ones(2)});
  EXPECT_EQ(runs, 1u);
}

TEST(Watched, WhereCompiledCodeGivesOtherBitsTheProgramIsTracedAgain) {
  double factor = 1;
  size_t compiled_runs = 0;
  Compiler counting([&](const Graph& graph, const CompileContext&) -> std::shared_ptr<Executable> {
    return boxed([graph, &compiled_runs](Tensors&& in) {
      ++compiled_runs;
      return graph.run(std::move(in));
    });
  });
  Compiled fast([&](const Tensors& in) { return Tensors{in[0] * factor}; }, {.fw_compiler = counting});
  at::Tensor x = torch::ones(2);
  for (int call = 1; call <= 3; ++call) fast({x});
  EXPECT_EQ(compiled_runs, 3u);
  factor = 5;
  fast({x});  // not watched
  EXPECT_TRUE(same_values(fast({x})[0], x * 5));
  EXPECT_TRUE(same_values(fast({x})[0], x * 5));
}

TEST(Watched, GradientsInsideAndNestedCompiledFunctions) {
  const uint64_t before = counter("promise_broken");
  auto inner =
      std::make_shared<Compiled>([](const Tensors& in) { return Tensors{in[0].sin() * in[0]}; }, Options{});
  Compiled fast(
      [inner](const Tensors& in) {
        at::Tensor x = in[0].detach().requires_grad_(), y = (*inner)({x})[0] + x * x + x;
        return Tensors{torch::autograd::grad({y.sum()}, {x})[0] * in[0]};
      },
      {});
  at::Tensor x = leaf({4});
  for (int call = 1; call <= 6; ++call) fast({x})[0].sum().backward();
  EXPECT_EQ(counter("promise_broken"), before);
}

/// The original draws libtorch's numbers: its results must not be those of a call in between.
TEST(Watched, FunctionsThatDrawCounterNumbersAreTracedAgain) {
  const uint64_t before = counter("promise_broken");
  double factor = 1;
  Compiled fast([&](const Tensors& in) { return Tensors{torch::dropout(in[0], 0.5, true) * factor}; },
                {.random = "counter"});
  auto seeded = [&] {
    torch::manual_seed(1);
    return fast({torch::ones(64)})[0];
  };
  const at::Tensor first = seeded();
  for (int call = 2; call <= 9; ++call) EXPECT_TRUE(same_values(seeded(), first)) << call;
  EXPECT_EQ(counter("promise_broken"), before);
  factor = 3;
  for (int call = 10; call <= 17; ++call) seeded();
  EXPECT_EQ(counter("promise_broken"), before + 1);
}

/// Eager differentiates a write to a view through its base, which no fake has.
TEST(Watched, AGradientInsideThroughAWriteToAView) {
  const uint64_t before = counter("promise_broken");
  Compiled fast(
      [](const Tensors& in) {
        in[1].mul_(in[0]);
        return Tensors{in[1], torch::autograd::grad({in[1].sum()}, {in[0]}, {}, true, true)[0]};
      },
      {});
  for (int call = 1; call <= 4; ++call) fast({leaf({4}), torch::randn({4, 4}).select(0, 1)});
  EXPECT_EQ(counter("promise_broken"), before);
}

}  // namespace
}  // namespace tandem
